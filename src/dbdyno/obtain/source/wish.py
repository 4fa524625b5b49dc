"""What a study asks of a build, as its levels say it, and the flags that this means."""

from __future__ import annotations

from dbdyno.errors import Blocked
from dbdyno.frozen import Frozen

DEBIAN = "debian"
NONE = "none"
DEFAULT = "default"
HARDENED = (
    ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fstack-clash-protection"),
    ("-Wl,-z,relro", "-Wl,-z,now"),
)
NOT_HARDENED = (
    ("-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fno-stack-clash-protection"),
    ("-Wl,-z,norelro", "-Wl,-z,lazy"),
)
ALWAYS = (("-frecord-gcc-switches",), ("-Wl,--build-id=sha1",))
"""So that a binary tells how it was compiled and which one it is. No instruction changes by it."""


class BuildWish(Frozen):
    """One level for each knob of the layers `source` and `build`, by the knob's name."""

    origin: str = DEBIAN
    revision: str = NONE
    patches: str = NONE
    recipe: str = DEFAULT
    compiler: str = "gcc"
    optimisation: str = "-O2"
    flags: str = NONE
    march: str = DEFAULT
    lto: str = "off"
    linker: str = DEFAULT
    hardening: str = DEFAULT

    @property
    def words(self) -> str:
        """What of it is not the default, for a person; the compiler and the optimisation always."""
        told = [self.compiler, self.optimisation]
        told += [f"-march={self.march}"] * (self.march != DEFAULT)
        told += [self.flags] * (self.flags != NONE)
        told += [f"LTO {self.lto}"] * (self.lto != "off")
        told += [f"linker {self.linker}"] * (self.linker != DEFAULT)
        told += [f"hardening {self.hardening}"] * (self.hardening != DEFAULT)
        told += [f"patches {self.patches}"] * (self.patches != NONE)
        return " ".join(told)


class Flags(Frozen):
    """What the compiler gets for every file, and what it gets beside that to link."""

    compile: tuple[str, ...] = ()
    link: tuple[str, ...] = ()

    def __add__(self, other: Flags) -> Flags:
        return Flags(compile=self.compile + other.compile, link=self.link + other.link)


def flags_of(knob: str, level: str, family: str) -> Flags:
    """The flags that a level of one of the layer's knobs means to a family of compilers, `gcc` or `clang`.

    Raises Blocked where the family has no such thing.
    """
    if knob == "optimisation":
        return Flags(compile=(level,))
    if knob == "flags" and level != NONE:
        return Flags(compile=tuple(level.split()))
    if knob == "march" and level != DEFAULT:
        return Flags(compile=(f"-march={level}",))
    if knob == "linker" and level != DEFAULT:
        return Flags(link=(f"-fuse-ld={level}",))
    if knob == "hardening" and level != DEFAULT:
        compiled, linked = HARDENED if level == "full" else NOT_HARDENED
        return Flags(compile=compiled, link=linked)
    if knob == "lto" and level != "off":
        if family == "gcc" and level == "thin":
            raise Blocked("build.lto", "GCC has no thin LTO", "write full, or take clang as the compiler")
        flag = "-flto=auto" if family == "gcc" else f"-flto={level}"
        return Flags(compile=(flag,), link=(flag,))
    return Flags()


KNOBS_OF_FLAGS = ("optimisation", "march", "lto", "hardening", "linker", "flags")
"""In the order of the command line: what the study writes as flags comes last, and so it holds."""


def all_flags(wish: BuildWish, family: str) -> Flags:
    """The whole of a build's flags. Raises Blocked like `flags_of`."""
    flags = Flags(compile=ALWAYS[0], link=ALWAYS[1])
    for knob in KNOBS_OF_FLAGS:
        flags += flags_of(knob, getattr(wish, knob), family)
    return flags
