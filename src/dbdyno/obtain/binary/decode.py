"""Instructions of x86-64: what of them depends on the place they stand at, and the extensions they use."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from types import ModuleType
from typing import NamedTuple

from iced_x86 import CpuidFeature, Decoder, Instruction, MemorySizeExt, Mnemonic, OpKind, Register

from dbdyno.obtain.binary.image import Image, Section
from dbdyno.records.binary import Extension

BITS = 64
LONG_BRANCH_BYTES = 5
"""A branch of at least so many bytes has a distance of four bytes, any other of one."""
NO_SIZE = 0
"""Of a reference whose operand has none: the address itself is taken."""
BRANCH = -1
THREAD_LOCAL = -2
EXAMPLES_MOST = 3
IN_EVERY_X86_64 = frozenset(
    {"X64", "CMOV", "CX8", "CPUID", "FPU", "FPU287", "FPU387", "FXSR", "MMX", "SSE", "SSE2", "MSR", "SYSCALL"}
    | {"TSC", "CLFSH", "PAUSE", "MULTIBYTENOP", "SEP", "CET_IBT", "CET_SS"}
)
"""Nothing to tell: every CPU has them, or takes them for a no-operation."""


PADDING = frozenset((Mnemonic.NOP, Mnemonic.INT3))
"""What linkers and compilers put between functions."""


class Reference(NamedTuple):
    """An address in an instruction. `size` is that of the operand there in bytes, or what else it is."""

    address: int
    size: int


class Decoded(NamedTuple):
    """A function's bytes with zeros where an address stood, and these addresses in their order."""

    name: str
    start: int
    end: int
    content: bytes
    instructions: int
    references: list[Reference]


class Uses:
    """How often each instruction was met, by iced's code for it, and the extensions that come of it."""

    def __init__(self) -> None:
        self._extensions: dict[int, tuple[str, ...]] = {}
        self._functions: dict[str, list[tuple[int, str]]] = {}

    def add(self, function: str, met: dict[int, Instruction], times: dict[int, int]) -> None:
        """Counts a function's instructions: an example of each code, and how often it was met."""
        found: dict[str, int] = {}
        for code, instruction in met.items():
            if code not in self._extensions:
                self._extensions[code] = tuple(extensions_of(instruction))
            for extension in self._extensions[code]:
                found[extension] = found.get(extension, 0) + times[code]
        for extension, count in found.items():
            self._functions.setdefault(extension, []).append((count, function))

    def extensions(self) -> tuple[Extension, ...]:
        """By name, each with the functions that use it most."""
        return tuple(
            Extension(
                name=name,
                instructions=sum(count for count, _ in functions),
                functions=len(functions),
                examples=tuple(
                    function for _, function in heapq.nlargest(EXAMPLES_MOST, functions) if function
                ),
            )
            for name, functions in sorted(self._functions.items())
        )


def _names(constants: ModuleType) -> dict[int, str]:
    return {value: name for name, value in vars(constants).items() if isinstance(value, int)}


FEATURES = _names(CpuidFeature)


def extensions_of(instruction: Instruction) -> Iterable[str]:
    """The extensions that an instruction needs beyond what every CPU of x86-64 has."""
    # Compilers write `rep bsf` for every CPU; one with BMI1 reads it as `tzcnt`.
    if instruction.mnemonic == Mnemonic.TZCNT:
        return ()
    names = (FEATURES[feature] for feature in instruction.cpuid_features())
    return sorted({_family(name) for name in names if not _everywhere(name)})


def _everywhere(name: str) -> bool:
    return name in IN_EVERY_X86_64 or name.startswith("INTEL")


def _family(name: str) -> str:
    """As the field writes it; the parts of AVX-512 are one."""
    if name.startswith("AVX512"):
        return "AVX-512"
    return name.replace("SSE4_", "SSE4.").replace("_", "-")


def without_padding(content: bytes, start: int) -> tuple[int, int] | None:
    """First and one past the last address of what is no padding, of code that begins at `start`; None where
    all of it is."""
    code = [one for one in Decoder(BITS, content, ip=start) if one.mnemonic not in PADDING]
    return (code[0].ip, code[-1].next_ip) if code else None


def decoded(image: Image, section: Section, name: str, start: int, end: int, uses: Uses) -> Decoded:
    """A function of a section, and its instructions counted."""
    content = bytearray(section.content[start - section.address : end - section.address])
    decoder = Decoder(BITS, bytes(content), ip=start)
    references: list[Reference] = []
    met: dict[int, Instruction] = {}
    times: dict[int, int] = {}
    for instruction in decoder:
        code = instruction.code
        if code in times:
            times[code] += 1
        else:
            times[code], met[code] = 1, instruction
        if instruction.op0_kind == OpKind.NEAR_BRANCH64:
            target = instruction.near_branch_target
            if not start <= target < end:
                width = 4 if instruction.len >= LONG_BRANCH_BYTES else 1
                at = instruction.next_ip - start
                content[at - width : at] = bytes(width)
                references.append(Reference(target, BRANCH))
            continue
        if instruction.is_ip_rel_memory_operand:
            _zero(content, decoder, instruction, start)
            size = MemorySizeExt.size(instruction.memory_size)
            references.append(Reference(instruction.ip_rel_memory_address, size))
        elif instruction.segment_prefix == Register.FS:
            _thread_local(content, decoder, instruction, start, references)
        if not image.movable:
            _absolute(content, decoder, instruction, image, start, references)
    uses.add(name, met, times)
    return Decoded(name, start, end, bytes(content), sum(times.values()), references)


def _zero(content: bytearray, decoder: Decoder, instruction: Instruction, start: int) -> None:
    """Takes the displacement out of an instruction."""
    offsets = decoder.get_constant_offsets(instruction)
    at = instruction.ip - start + offsets.displacement_offset
    content[at : at + offsets.displacement_size] = bytes(offsets.displacement_size)


def _thread_local(
    content: bytearray, decoder: Decoder, instruction: Instruction, start: int, references: list[Reference]
) -> None:
    """A variable of the thread lies below the thread pointer; what lies above is the C library's."""
    displacement = instruction.memory_displacement
    if displacement >> (BITS - 1):
        _zero(content, decoder, instruction, start)
        references.append(Reference(displacement - (1 << BITS), THREAD_LOCAL))


def _absolute(
    content: bytearray,
    decoder: Decoder,
    instruction: Instruction,
    image: Image,
    start: int,
    references: list[Reference],
) -> None:
    """Addresses that a program of a fixed place has in displacements and immediates of four bytes."""
    offsets = decoder.get_constant_offsets(instruction)
    places = (
        (offsets.displacement_offset, offsets.displacement_size),
        (offsets.immediate_offset, offsets.immediate_size),
    )
    for offset, size in places:
        at = instruction.ip - start + offset
        value = int.from_bytes(content[at : at + size], "little")
        if size >= 4 and image.could_be_address(value):
            content[at : at + size] = bytes(size)
            references.append(Reference(value, NO_SIZE))
