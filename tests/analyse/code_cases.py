"""What the tests of code share with others."""

from __future__ import annotations

from dbdyno.records.binary import (
    Binary,
    Code,
    Datum,
    ElfKind,
    Function,
    Hardening,
    Relro,
)

HARDENING = Hardening(
    position_independent=True,
    relro=Relro.FULL,
    stack_protector=True,
    fortified=3,
    branch_tracking=False,
    shadow_stack=False,
    executable_stack=False,
)


def a_function(name: str, code: str = "", constants: str = "", size: int = 16) -> Function:
    return Function(name, size, size // 4, (code or name).encode(), constants.encode())


def a_build(*functions: Function, data: tuple[Datum, ...] = (), libraries: tuple[str, ...] = ()) -> Code:
    facts = Binary(
        path="built",
        digest="ab",
        kind=ElfKind.PROGRAM,
        build_id="",
        compilers=("GCC: 12.2.0",),
        producers=(),
        libraries=libraries,
        sections={".text": 1000},
        hardening=HARDENING,
        extensions=(),
        named=True,
        functions=len(functions),
        instructions=sum(function.instructions for function in functions),
        code_bytes=sum(function.size for function in functions),
    )
    return Code(facts, functions, data)
