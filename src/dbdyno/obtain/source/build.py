"""Builds: all that goes into one, and the key that follows from it.

What a build for an architecture of a study of platforms is made against: a root of the distribution's
packages, with the headers and libraries that the recipe needs. What is built runs on that root, as packages
do: by its dynamic loader, and under an emulator where it is of another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from dbdyno.errors import DynoError
from dbdyno.frozen import Frozen, absent
from dbdyno.host.cache import Tell
from dbdyno.obtain import debian
from dbdyno.obtain.architecture import Architecture, architecture, header
from dbdyno.obtain.source.recipe import Recipe
from dbdyno.obtain.source.wish import Flags, Trainer

C_LIBRARY, CXX_LIBRARY = "libc6-dev", "libstdc++6"
EMULATE = "emulate"
"""The script in a build's folder that runs a program of the target."""
BEHIND = ".elf"
"""How the name of a program ends whose place a script has taken."""
SUITES = ("bookworm", "trixie")
"""Debian's that hold every architecture. Compilers of a suite are made for the libraries of the same one."""


@dataclass(frozen=True)
class Target:
    """An architecture, and the root that stands for a machine of it."""

    architecture: Architecture
    root: debian.Fetched

    @property
    def flags(self) -> Flags:
        """What leads the compiler and the linker to the root."""
        into = (f"--sysroot={self.root.prefix}",)
        return Flags(compile=into, link=into)

    @property
    def places(self) -> dict[str, str]:
        """What the places of a recipe stand for that are of the target."""
        known = self.architecture
        return {"triplet": known.triplet, "kernel": known.kernel, "sysroot": str(self.root.prefix)}

    def lay(self, folder: Path) -> None:
        """Puts the script into a build's folder that runs a program of the target."""
        _script(folder / EMULATE, shlex.join(self.root.loader), '"$@"')

    @contextmanager
    def fronted(self, *folders: Path, libraries: tuple[Path, ...]) -> Iterator[None]:
        """Has each program of the target in these folders run by its name: a script takes its place, because
        a kernel runs no program of another machine. Programs look for libraries in those folders first."""
        command = shlex.join(replace(self.root, libraries=libraries).loader)
        programs = [file for folder in folders for file in folder.rglob("*") if self._is_program(file)]
        for program in programs:
            behind = program.with_name(program.name + BEHIND)
            program.rename(behind)
            # The name by which it was called, because a program finds its own files by that.
            _script(program, f'{command} --argv0 "$0"', f'{shlex.quote(str(behind))} "$@"')
        try:
            yield
        finally:
            for program in programs:
                program.with_name(program.name + BEHIND).replace(program)

    def _is_program(self, file: Path) -> bool:
        if file.is_symlink() or not file.is_file() or not os.access(file, os.X_OK) or file.suffix == BEHIND:
            return False
        with suppress(DynoError):
            made_for = header(file)
            return made_for.is_program and made_for.machine == self.architecture.machine
        return False


def _script(file: Path, command: str, arguments: str) -> None:
    file.write_text(f"#!/bin/sh\nexec {command} {arguments}\n")
    file.chmod(0o755)


def target_here(recipe: Recipe, name: str) -> Target | None:
    """The target with a root that was fetched already; None where none holds what the recipe needs. Raises
    UserError for an architecture that Dyno does not know."""
    wanted, packages = architecture(name), _recipe_of_root(recipe, name)
    for copy in debian.fetched(packages.shelved):
        if set(packages.packages) <= copy.packages.keys():
            return Target(wanted, copy)
    return None


def target(recipe: Recipe, name: str, tell: Tell) -> Target:
    """The same, fetched where it is not here. Raises DynoError where it cannot be fetched."""
    found = target_here(recipe, name)
    return found or Target(architecture(name), debian.fetch(_recipe_of_root(recipe, name), tell=tell))


def _recipe_of_root(recipe: Recipe, name: str) -> debian.Recipe:
    cxx = (CXX_LIBRARY,) if recipe.cxx else ()
    return debian.Recipe(
        engine=f"root-of-{recipe.engine}",
        packages=tuple(dict.fromkeys((C_LIBRARY, *cxx, *recipe.headers.values()))),
        server=C_LIBRARY,
        binary="usr/include/stdio.h",
        suites={"": _suite()},
        architecture=name,
    )


def _suite() -> str:
    with suppress(OSError):
        name = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
        return name if name in SUITES else SUITES[0]
    return SUITES[0]


ENVIRONMENT = {"LC_ALL": "C", "SOURCE_DATE_EPOCH": "1000000000", "TZ": "UTC"}
"""So that a build does not depend on who makes it, nor when."""


class Bolting(Frozen):
    """What decides on how BOLT lays a build out: the load that trains it, the digest of the tool, and what
    that is asked to do."""

    trainer: Trainer
    tool: str
    options: tuple[str, ...]


class Build(Frozen):
    """All that goes into a build, by digest where it is a file: two with the same key are the same build.

    `target` is what the compiler makes of `native` on this CPU, because a cache may travel to another one.
    One for an `architecture` of a study of platforms is made against the `root` of that digest.
    One that is trained is `instrumented` by flags of its own at first, in an environment of its own.
    `profile` and `bolt_profile` are known once it is trained, so a build is named by the key without them.
    `script` is the linker's.
    """

    engine: str
    recipe: str
    source: str
    patches: tuple[str, ...]
    toolchain: str
    flags: Flags
    target: tuple[str, ...] = absent(())
    environment: dict[str, str] = Field(default_factory=lambda: dict(ENVIRONMENT))
    # What a build has not is left out, so that the keys of other builds stay.
    trainer: Trainer | None = absent(None)
    instrumented: Flags | None = absent(None)
    instrumented_environment: dict[str, str] = absent({})
    profile: str = absent("")
    script: str = absent("")
    bolting: Bolting | None = absent(None)
    bolt_profile: str = absent("")
    architecture: str = absent("")
    root: str = absent("")

    @property
    def key(self) -> str:
        told = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """On the shelf of builds."""
        return f"{self.engine}-{self.key}"


class OwnTest(Frozen):
    """How one of the source's own tests ended; `absent` is one that the source does not carry, and `unable`
    one that could not run here. `detail` says why it did not pass."""

    name: str
    verdict: Literal["passed", "absent", "failed", "unable"]
    detail: str = ""

    @property
    def holds_up(self) -> bool:
        """Whether the build fails the gate by it, or is kept from it."""
        return self.verdict in ("failed", "unable")


class Training(Frozen):
    """How a build was trained: so many transactions in so many seconds. They wrote so many `files` of a
    profile, which know of so many `functions`, and of those that were `executed`. `profile` is the digest of
    what was counted. It is `unfit` for so many functions, which other programs of the source have. BOLT tells
    how many functions it `moved` about by that, and which it has `left` as they were, because it cannot
    rewrite them."""

    trainer: Trainer
    transactions: int
    took_s: float
    files: int
    functions: int
    executed: int
    profile: str
    unfit: int = absent(0)
    moved: int | None = absent(None)
    left: tuple[str, ...] = absent(())

    @property
    def words(self) -> str:
        told = [f"{self.executed:,} of {self.functions:,} functions executed"]
        told += [f"{self.unfit:,} of other programs without it"] * bool(self.unfit)
        told += [] if self.moved is None else [f"{self.moved:,} laid out anew"]
        told += [f"{', '.join(self.left)} left as compiled"] * bool(self.left)
        return f"trained by {self.trainer.words}: {', '.join(told)}, profile {self.profile[:12]}"


class Reused(Frozen):
    """How many objects of a build were `compiled`, and how many `taken` from earlier builds. Of both, so many
    were compiled once more and `compared`, byte for byte."""

    compiled: int
    taken: int
    compared: int

    @property
    def nearly_all(self) -> bool:
        """Whether hardly any object was compiled, beside those that were compared."""
        return self.taken > 9 * self.compiled

    @property
    def words(self) -> str:
        told = f"{self.taken:,} of {self.compiled + self.taken:,} objects taken from earlier builds"
        return f"{told}, {self.compared:,} compiled again: the same"


class Made(Frozen):
    """What is kept of a build: the account of how it came about. `program` lies below its prefix, `took_s`
    are the seconds of its commands and of its trainings, and `network` says whether the commands could have
    asked for it. `training` is the compiler's, and `bolt` that of BOLT. `tests` are the source's own that
    were run, and `layout` is the seed that shuffled its functions, as the study writes it. `reused` is None
    where the build took no objects of others. `made_on` is the host of a fleet that made it for all others;
    empty for one that no fleet needed."""

    key: str
    engine: str
    words: str
    source: str
    patches: tuple[str, ...] = ()
    toolchain: str
    flags: Flags
    recipe: str
    program: str = ""
    took_s: float
    network: bool = False
    training: Training | None = absent(None)
    bolt: Training | None = absent(None)
    tests: tuple[OwnTest, ...] = ()
    layout: str = ""
    reused: Reused | None = absent(None)
    made_on: str = absent("")


class Foreseen(Frozen):
    """What is known of a build before a run. It is `there`, takes about `expected_s`, or cannot be made here
    because of `problem`, which `remedy` would mend. `trainer` is what trains it, if anything does. One
    whose source is here has a `name`. `gate` says what the correctness gate found of it; where it is still to
    be asked, that takes about `gate_s`."""

    words: str
    trainer: str = absent("")
    variants: tuple[str, ...]
    there: bool = False
    expected_s: float = 0.0
    name: str = ""
    gate: str = ""
    gate_s: float = 0.0
    problem: str = ""
    remedy: str = ""

    @property
    def whole_s(self) -> float:
        return self.expected_s + self.gate_s
