"""What a program or a library holds, as its own file tells: the evidence by which two builds are compared."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from dbdyno.frozen import Frozen


class Kind(StrEnum):
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
    kind: Kind
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
    """One function, whatever its address. `code` is a digest of its instructions, in which addresses stand as
    the names of what they refer to. `constants` is one of the nameless constants that it uses. A stripped
    file's functions have no `name`."""

    name: str
    size: int
    instructions: int
    code: bytes
    constants: bytes


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
