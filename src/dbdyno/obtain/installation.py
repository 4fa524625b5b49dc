"""An engine on this machine, and one that can be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import EngineMissing
from dbdyno.study.reference import Reference


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
    engine says of its build, by name.
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

    @property
    def offer(self) -> Offer:
        return Offer(self.engine, self.version, self.origin, present=True)


def covers(wanted: str, version: str) -> bool:
    """Whether a version is one that was asked for: `11.8` covers 11.8.6, an empty one covers all."""
    return not wanted or f"{version}.".startswith(f"{wanted}.")


def first_covering(installations: Iterable[Installation], reference: Reference) -> Installation:
    """The first that is of the version asked for. Raises EngineMissing with the command that obtains it."""
    for installation in installations:
        if covers(reference.version, installation.version):
            return installation
    wanted = f"{reference.engine}@{reference.version}" if reference.version else reference.engine
    raise EngineMissing(f"{wanted} is not on this machine", f"`dyno engines fetch {wanted}` obtains it")
