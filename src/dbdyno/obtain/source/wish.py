"""What a study asks of a build, as its levels say it, and the flags that this means."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbdyno.errors import Blocked
from dbdyno.frozen import Frozen, Level, level_text

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


class BuildWish(Frozen):
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
        return getattr(self, knob) not in (BuildWish.model_fields[knob].default, NONE)


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
    default = BuildWish.model_fields[knob].default
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


def all_flags(wish: BuildWish, family: str, profiling: Flags = NO_FLAGS) -> Flags:
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
