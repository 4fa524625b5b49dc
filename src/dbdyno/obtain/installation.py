"""An engine on this machine, and one that can be had.

What is said of an engine that is not here and cannot be fetched, because nothing answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import EngineMissing, EngineUnobtainable, Unreachable
from dbdyno.host import cache
from dbdyno.obtain.architecture import emulator
from dbdyno.study.nouns import Reference


def not_installed(
    engine: str, version: str, source: str, unreachable: Unreachable, architecture: str = ""
) -> Unreachable:
    """What is missing, who did not answer, and how to bring it from a machine that has a network. An
    `architecture` is named where the engine is wanted for another machine."""
    wanted, folder = f"{engine}@{version}" if version else engine, cache.shelf("engines").folder
    if architecture:
        return Unreachable(
            f"{wanted} of {architecture} is not on this machine, and {source} cannot be reached:"
            f" {unreachable.message}",
            f"{unreachable.hint}. Or `dyno engines fetch {wanted} --platform {architecture}` on a machine"
            f" with a network, and copy ~/.cache/dyno/engines/{architecture}-of-{engine}-* from there into"
            f" {folder}",
        )
    return Unreachable(
        f"{wanted} is not on this machine, and {source} cannot be reached: {unreachable.message}",
        f"{unreachable.hint}. Or `dyno engines fetch {wanted}` on a machine with a network and this one's "
        f"architecture, and copy ~/.cache/dyno/engines/*{engine}-* from there into {folder}",
    )


@dataclass(frozen=True)
class Offer:
    """One line of `dyno engines`: an engine that is here, or that can be had.

    `source` is a path or where it comes from; `command` is what `dyno engines fetch` takes, if anything.
    """

    engine: str
    version: str
    source: str
    present: bool
    command: str = ""


@dataclass(frozen=True)
class Installation:
    """An engine that can be started. `command` runs the server binary, private loader included if any.

    `origin` says where it came from in words a person can check; `digest` identifies the bytes. `library` is
    the file that the load process must hold, for an embedded engine that proves it. `facts` are what else the
    engine says of its build, by name. `writes` is where its programs write besides: an instrumented one's
    profiles. One that was fetched for a study of platforms names its `architecture`. A server that runs
    already has no command; `offered` are then the names of its settings.
    """

    engine: str
    version: str
    origin: str
    prefix: Path
    command: tuple[str, ...]
    digest: str
    environment: Mapping[str, str] = field(default_factory=dict)
    library: Path | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[Path, ...] = ()
    architecture: str = ""
    offered: frozenset[str] | None = None

    @property
    def emulated(self) -> bool:
        """Whether its instructions are those of another machine."""
        return bool(self.architecture and emulator(self.architecture))

    @property
    def offer(self) -> Offer:
        return Offer(self.engine, self.version, self.origin, present=True)


LOCALE = {"LC_ALL": "C.UTF-8"}
"""By the locale of its user an engine tells small letters from large ones, sorts, and says what is wrong. In
Turkish, Firebird does not know the names in its own plugins.conf. So all have the same one everywhere."""


def environment_of(*given: Mapping[str, str]) -> dict[str, str]:
    """What a program of an engine is started with: this process's environment, in the locale of all engines,
    and what is `given`."""
    environment = {**os.environ, **LOCALE}
    for one in given:
        environment |= one
    return environment


def covers(wanted: str, version: str) -> bool:
    """Whether a version is one that was asked for: `11.8` covers 11.8.6, an empty one covers all."""
    return not wanted or f"{version}.".startswith(f"{wanted}.")


def may_hold(version: str, held: str) -> bool:
    """Whether what holds one version may hold another: 11.8 may be 11.8.6, and 11.8.6 is of 11.8."""
    return covers(version, held) or covers(held, version)


def highest_first(installations: Iterable[Installation]) -> list[Installation]:
    """By version; those of one version stay in their order."""
    return sorted(installations, key=lambda one: _numbers(one.version), reverse=True)


def is_below(version: str, other: str) -> bool:
    """Whether a version has smaller numbers than another one."""
    return _numbers(version) < _numbers(other)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def first_covering(
    installations: Iterable[Installation], reference: Reference, held: Collection[str]
) -> Installation:
    """The first that is of the version asked for. Raises EngineMissing with the command that obtains it, and
    EngineUnobtainable where no version that is `held` elsewhere is the one."""
    here = []
    for installation in installations:
        if covers(reference.version, installation.version):
            return installation
        here.append(installation.version)
    engine, version = reference.engine, reference.version
    wanted = f"{engine}@{version}" if version else engine
    if any(may_hold(version, one) for one in held):
        raise EngineMissing(f"{wanted} is not on this machine", f"`dyno engines fetch {wanted}` obtains it")
    raise EngineUnobtainable(
        f"{wanted} is not on this machine, and cannot be fetched", _versions_text(engine, here, held)
    )


def _versions_text(engine: str, here: Collection[str], held: Collection[str]) -> str:
    """The versions that can be named instead, and the way to one that Dyno does not know."""
    others = [version for version in held if not any(covers(version, one) for one in here)]
    own = [f"{engine}@{version}" for version in here]
    fetched = [f"{engine}@{version} (`dyno engines fetch`)" for version in others]
    return f"there are: {', '.join([*own, *fetched])}; or name one by its path, {engine}:PATH"
