"""What a program or a library holds, as its own file tells: the evidence by which two builds are compared.

The names of functions and objects without what compilers add.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from dbdyno.frozen import Frozen, absent

MADE_BY_COMPILER = re.compile(
    r"((\.(part|cold|constprop|isra|lto_priv|localalias|llvm|warm|clone|__uniq)\b(\.\d+)*|\.\d+)+"
    r"|( \[clone [^\]]*\])+)$"
)
"""The ends of names by which compilers tell the parts and copies of a function or an object apart, as they
stand in a symbol, and as a name of C++ is written."""


@cache
def base_name(name: str) -> str:
    """A symbol without what the compiler added: `scan` for `scan.constprop.0.cold`."""
    return MADE_BY_COMPILER.sub("", name) or name


class ElfKind(StrEnum):
    """What an ELF file is for."""

    PROGRAM = "program"
    LIBRARY = "library"


class Relro(StrEnum):
    """How much of what the loader writes becomes read-only before the program starts."""

    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"


class Hardening(Frozen):
    """The protections that a build carries. `fortified` counts the checked functions of the C library that it
    calls (`__memcpy_chk`); `branch_tracking` and `shadow_stack` are Intel's CET."""

    position_independent: bool
    relro: Relro
    stack_protector: bool
    fortified: int
    branch_tracking: bool
    shadow_stack: bool
    executable_stack: bool


class Extension(Frozen):
    """An extension of the instruction set: how many instructions belong to it, in how many functions, and
    those with the most of them."""

    name: str
    instructions: int
    functions: int
    examples: tuple[str, ...]


class Binary(Frozen):
    """The facts of one build. `digest` identifies the file's bytes. `compilers` are what the linker kept of
    `.comment`, `producers` are compilers with their flags where the build recorded them. `libraries` are what
    it asks the loader for. `sections` have their sizes in bytes. Without `named` the file is stripped,
    or read like one: its functions are the ranges of the unwinder's table, and only exported ones have a
    name."""

    path: str
    digest: str
    kind: ElfKind
    build_id: str
    compilers: tuple[str, ...]
    producers: tuple[str, ...]
    libraries: tuple[str, ...]
    sections: dict[str, int]
    hardening: Hardening
    extensions: tuple[Extension, ...]
    named: bool
    functions: int
    instructions: int
    code_bytes: int


class Function(NamedTuple):
    """One function. `code` is a digest of its instructions, in which addresses stand as the names of what
    they refer to. `constants` is one of the nameless constants that it uses. A stripped file's functions
    have no `name`."""

    name: str
    size: int
    instructions: int
    code: bytes
    constants: bytes
    address: int = 0


class Datum(NamedTuple):
    """A named constant or variable, by a digest of its first value, in which addresses stand as names."""

    name: str
    size: int
    value: bytes


class Code(NamedTuple):
    """All of a build that is compared."""

    binary: Binary
    functions: tuple[Function, ...]
    data: tuple[Datum, ...]


class Likeness(StrEnum):
    """What two builds have in common. `inert`: code and data are the same but for where they lie, which
    alone can still change a speed. `constants`: the code is the same, and works on other constants, variables
    or libraries, or under other protections."""

    INERT = "inert"
    CONSTANTS = "constants"
    DIFFERENT = "different"


class Matching(Frozen):
    """How many functions, or objects, of two builds are equal, differ, or are in one alone."""

    equal: int
    differing: int
    only_left: int
    only_right: int

    @property
    def all_equal(self) -> bool:
        return not (self.differing or self.only_left or self.only_right)


class CodeBeside(Frozen):
    """How much of a build's code is that of another one, which stands on the left.

    `moved` of the equal functions lie at another address. `code_bytes` are those of all functions. Without
    `named` one of the two is stripped: then nothing can be said of single functions and of the data.
    `other_files` are those beside the program that a server can load, and that differ in any byte.
    `other_environment`: the servers are started in other environments.
    """

    likeness: Likeness
    functions: Matching
    other_constants: int
    moved: int
    data: Matching
    code_bytes: int
    code_bytes_against: int
    named: bool
    other_files: int = absent(0)
    other_environment: bool = absent(False)

    @property
    def same_program(self) -> bool:
        """Whether code and data of the program are told to be the same, wherever they lie."""
        return self.named and self.likeness is Likeness.INERT

    @property
    def same(self) -> bool:
        """Whether the program is told to be the same, and all else that its server runs with."""
        return self.same_program and not self.other_files and not self.other_environment

    @property
    def changed(self) -> int:
        """How many functions are other ones. Without names a changed one stands on both sides."""
        alone = self.functions.only_left, self.functions.only_right
        return self.functions.differing + (sum(alone) if self.named else max(alone))
