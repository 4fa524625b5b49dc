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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from dbdyno.errors import Blocked, DynoError
from dbdyno.frozen import Frozen, Level, absent, level_text
from dbdyno.host.cache import Tell
from dbdyno.obtain import debian
from dbdyno.obtain.architecture import Architecture, architecture, elf_header
from dbdyno.obtain.source.recipe import Recipe

DEBIAN = "debian"
NONE = "none"
DEFAULT = "default"
OFF = "off"
HARDENED = (
    ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fstack-clash-protection"),
    ("-Wl,-z,relro", "-Wl,-z,now"),
)
NOT_HARDENED = (
    ("-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fno-stack-clash-protection"),
    ("-Wl,-z,norelro", "-Wl,-z,lazy"),
)
SECTIONS = ("-ffunction-sections",)
"""So that the linker can put each function where a seed says. A link with LTO compiles, too."""
WHOLE_FUNCTIONS, RELOCATIONS = ("-fno-reorder-blocks-and-partition",), ("-Wl,--emit-relocs",)
"""What BOLT needs of a program, because it moves whole functions: gcc would move parts of them away."""
ALWAYS = (("-frecord-gcc-switches",), ("-Wl,--build-id=sha1",))
"""So that a binary tells how it was compiled and which one it is. No instruction changes by it."""


class Trainer(Frozen):
    """The load that trains a build: so many transactions of a workload, by so many clients, on a server with
    these settings. `options` are all of the workload's own, and `settings` go by factor name."""

    workload: str
    options: tuple[tuple[str, Level], ...] = ()
    settings: tuple[tuple[str, Level], ...] = ()
    clients: int = 1
    transactions: int

    @property
    def words(self) -> str:
        """`tpcb scale=2, 5,000 transactions of 1 client`: the options as a study writes them, but for those
        that are off."""
        on = [(name, level) for name, level in self.options if level is not False and level != ""]
        load = " ".join([self.workload, *(f"{name}={level_text(level)}" for name, level in on)])
        clients = "1 client" if self.clients == 1 else f"{self.clients:,} clients"
        return f"{load}, {self.transactions:,} transactions of {clients}"


class BuildSpecification(Frozen):
    """One level for each knob of the layers `source` and `build`, by the knob's name. `trainer` is what the
    level of `pgo` means in a study, and `bolt_trainer` what that of `bolt` means; None where it is off.
    `architecture` is what a study of platforms names, and empty in any other one."""

    origin: str = DEBIAN
    revision: str = NONE
    patches: str = NONE
    recipe: str = DEFAULT
    compiler: str = "gcc"
    optimisation: str = "-O2"
    flags: str = NONE
    march: str = DEFAULT
    lto: str = OFF
    linker: str = DEFAULT
    hardening: str = DEFAULT
    pgo: str = OFF
    trainer: Trainer | None = None
    bolt: str = OFF
    bolt_trainer: Trainer | None = None
    layout: str = DEFAULT
    architecture: str = ""

    @property
    def trainers(self) -> tuple[Trainer, ...]:
        """All that train it, in their order."""
        return tuple(one for one in (self.trainer, self.bolt_trainer) if one is not None)

    @property
    def prepared_from(self) -> tuple[str, ...]:
        """What decides on the source that it is made of. Builds that agree in it share that."""
        return self.origin, self.revision, self.patches, self.recipe

    @property
    def seed(self) -> int | None:
        """What shuffles the functions; None where they lie as compiler and linker put them."""
        return None if self.layout in (DEFAULT, NONE) else int(self.layout)

    @property
    def words(self) -> str:
        """What of it is not the default, for a person; the compiler and the optimisation always."""
        told = [words.format(getattr(self, knob)) for knob, words in WORDS.items() if self._asks(knob)]
        return " ".join((self.compiler, self.optimisation, *told))

    def _asks(self, knob: str) -> bool:
        """Whether its level is another than without it."""
        return getattr(self, knob) not in (BuildSpecification.model_fields[knob].default, NONE)


WORDS = {
    "march": "-march={}",
    "flags": "{}",
    "lto": "LTO {}",
    "pgo": "PGO by {}",
    "bolt": "BOLT by {}",
    "linker": "linker {}",
    "hardening": "hardening {}",
    "patches": "patches {}",
    "layout": "layout {}",
    "architecture": "for {}",
}
"""What is told of a knob that is not at its default."""


class Flags(Frozen):
    """What the compiler gets for every file, and what it gets beside that to link."""

    compile: tuple[str, ...] = ()
    link: tuple[str, ...] = ()

    def __add__(self, other: Flags) -> Flags:
        return Flags(compile=self.compile + other.compile, link=self.link + other.link)


def _lto(level: str, family: str) -> Flags:
    if family == "gcc" and level == "thin":
        raise Blocked("build.lto", "GCC has no thin LTO", "write full, or take clang as the compiler")
    flag = "-flto=auto" if family == "gcc" else f"-flto={level}"
    return Flags(compile=(flag,), link=(flag,))


def _hardening(level: str, _family: str) -> Flags:
    compiled, linked = HARDENED if level == "full" else NOT_HARDENED
    return Flags(compile=compiled, link=linked)


def _bolt(_level: str, family: str) -> Flags:
    return Flags(compile=WHOLE_FUNCTIONS if family == "gcc" else (), link=RELOCATIONS)


FLAGS: Mapping[str, Callable[[str, str], Flags]] = {
    "optimisation": lambda level, _: Flags(compile=(level,)),
    "march": lambda level, _: Flags(compile=(f"-march={level}",)),
    "lto": _lto,
    "hardening": _hardening,
    "linker": lambda level, _: Flags(link=(f"-fuse-ld={level}",)),
    # Without a seed as well, because a jump to the next function is shorter within one section.
    "layout": lambda _level, _: Flags(compile=SECTIONS, link=SECTIONS),
    "bolt": _bolt,
    "flags": lambda level, _: Flags(compile=tuple(level.split())),
}
"""What a level of a knob means to a family of compilers, in the order of the command line: what the study
writes as flags comes last, and so it holds."""
WITHOUT = (DEFAULT, NONE, OFF)
"""Defaults that mean no flag."""


def flags_of(knob: str, level: str, family: str) -> Flags:
    """The flags that a level of one of the layer's knobs means to a family of compilers, `gcc` or `clang`.

    Raises Blocked where the family has no such thing.
    """
    default = BuildSpecification.model_fields[knob].default
    if knob not in FLAGS or (level == default and default in WITHOUT):
        return Flags()
    return FLAGS[knob](level, family)


INSTRUMENTING = {
    "gcc": Flags(
        compile=("-fprofile-generate", "-fprofile-update=prefer-atomic"),
        # The library alone: the flag would come after the study's own, where one command compiles and links.
        link=("-lgcov",),
    ),
    "clang": Flags(
        compile=("-fprofile-instr-generate", "-fprofile-update=prefer-atomic"),
        link=("-fprofile-instr-generate",),
    ),
}
"""What makes an engine write a profile, by family of compilers. Threads count in the same places."""
MERGED = "merged.profdata"
"""The one file of a profile of clang's."""
GUIDED = {
    "gcc": Flags(
        compile=(
            "-fprofile-use",
            # What the trainer never ran is compiled as if there were no profile, and not for size.
            "-fprofile-partial-training",
            "-Wno-missing-profile",
            # Dyno counts the functions that do not fit, and judges by them.
            "-Wno-error=coverage-mismatch",
        ),
        link=("-fprofile-use",),
    ),
    "clang": Flags(compile=(f"-fprofile-instr-use={{profile}}/{MERGED}", "-Wno-profile-instr-unprofiled")),
}
"""What makes the compiler follow a profile. `{profile}` is the folder that holds it."""


NO_FLAGS = Flags()


def all_flags(wish: BuildSpecification, family: str, profiling: Flags = NO_FLAGS) -> Flags:
    """The whole of a build's flags. What concerns a profile comes before the flags that the study writes.
    Raises Blocked like `flags_of`, and where a seed meets a linker that takes no part of a script."""
    if wish.seed is not None and wish.linker not in (DEFAULT, "bfd"):
        reason = f"the linker {wish.linker} cannot shuffle functions by a seed"
        raise Blocked("build.layout", reason, "leave build.linker at default or bfd")
    flags = Flags(compile=ALWAYS[0], link=ALWAYS[1])
    for knob in FLAGS:
        flags += profiling if knob == "flags" else NO_FLAGS
        flags += flags_of(knob, getattr(wish, knob), family)
    return flags


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
            made_for = elf_header(file)
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


def _recipe_of_root(recipe: Recipe, name: str) -> debian.DebianRecipe:
    cxx = (CXX_LIBRARY,) if recipe.cxx else ()
    return debian.DebianRecipe(
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


class BuildAccount(Frozen):
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
