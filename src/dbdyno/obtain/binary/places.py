"""What an address refers to, said without the address: a name, an import, a jump table, a constant's bytes.

Two builds put the same things at other addresses, so only what is said here is compared.

Instructions of x86-64: what of them depends on the place they stand at, and the extensions they use.
"""

from __future__ import annotations

import bisect
import heapq
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import NamedTuple

from iced_x86 import CpuidFeature, Decoder, Instruction, MemorySizeExt, Mnemonic, OpKind, Register

from dbdyno.obtain.binary.image import WORD_BYTES, Image, ImageSection, Slot, Symbol
from dbdyno.records.binary import Extension, base_name

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


class AddressReference(NamedTuple):
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
    references: list[AddressReference]


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


def decoded(image: Image, section: ImageSection, name: str, start: int, end: int, uses: Uses) -> Decoded:
    """A function of a section, and its instructions counted."""
    content = bytearray(section.content[start - section.address : end - section.address])
    decoder = Decoder(BITS, bytes(content), ip=start)
    references: list[AddressReference] = []
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
                references.append(AddressReference(target, BRANCH))
            continue
        if instruction.is_ip_rel_memory_operand:
            _zero(content, decoder, instruction, start)
            size = MemorySizeExt.size(instruction.memory_size)
            references.append(AddressReference(instruction.ip_rel_memory_address, size))
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
    content: bytearray,
    decoder: Decoder,
    instruction: Instruction,
    start: int,
    references: list[AddressReference],
) -> None:
    """A variable of the thread lies below the thread pointer; what lies above is the C library's."""
    displacement = instruction.memory_displacement
    if displacement >> (BITS - 1):
        _zero(content, decoder, instruction, start)
        references.append(AddressReference(displacement - (1 << BITS), THREAD_LOCAL))


def _absolute(
    content: bytearray,
    decoder: Decoder,
    instruction: Instruction,
    image: Image,
    start: int,
    references: list[AddressReference],
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
            references.append(AddressReference(value, NO_SIZE))


TABLE_ENTRIES_MOST = 4096
CONSTANT_BYTES_MOST = 65_536
STUB_BYTES = 16
"""A stub of the linkage table is one jump, perhaps behind a landing mark."""
TABLES_OF_LINKER = (".rela", ".dyn", ".gnu", ".eh_frame", ".note", ".hash")
"""Sections that are made of addresses."""
TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{4,}\0")
"""Fewer characters before a zero could as well be a number."""


class Places:
    """Says of addresses what they refer to. `taken` are all addresses that code refers to: where one thing
    without a name ends and the next begins."""

    def __init__(self, image: Image, taken: Iterable[int]) -> None:
        self._image = image
        targets = (slot.target for slot in image.slots.values() if not slot.symbol)
        self._beginnings = sorted({*taken, *targets, *(symbol.address for symbol in image.symbols)})
        self._stubs: dict[int, str] = {}

    def told(self, reference: AddressReference, start: int, end: int) -> tuple[str, bytes]:
        """What an instruction of the function from `start` to `end` refers to, and the bytes of a constant
        that has no name."""
        address, size = reference
        if size == THREAD_LOCAL:
            return f"thread-local {self._thread_local(address)}", b""
        if start <= address < end:
            return f"here+{address - start:x}", b""
        if name := self._name(address):
            return name, b""
        if address in self._image.slots:
            return f"slot {' '.join(self._slot_texts(address, size))}", b""
        section = self._image.section_at(address)
        if section is None:
            return "nothing", b""
        if section.executable:
            return (self._stub(address) if size == BRANCH else "") or section.name, b""
        if section.writable or section.name.startswith(TABLES_OF_LINKER):
            return section.name, b""
        # What has a size is read as it stands; a table is taken by its address.
        if size == NO_SIZE and (table := self._table(address, start, end)):
            return f"table {table}", b""
        return section.name, self._constant(address, size)

    def _slot_texts(self, address: int, size: int) -> Iterator[str]:
        """What the loader writes into the words of an operand, which a vector has several of."""
        for word in range(address, address + max(size, WORD_BYTES), WORD_BYTES):
            if word in self._image.slots:
                yield self.slot_text(self._image.slots[word])

    def slot_text(self, slot: Slot) -> str:
        """What the loader writes into a word."""
        if slot.symbol:
            return base_name(slot.symbol)
        return self.target_text(slot.target)

    def target_text(self, address: int) -> str:
        """What an address in data refers to; a text without a name stands for itself."""
        if name := self._name(address):
            return name
        section = self._image.section_at(address)
        if section is None:
            return "nothing"
        constant = b"" if section.writable or section.executable else self._constant(address, NO_SIZE)
        return f"{section.name} {constant.hex()}"

    def _name(self, address: int) -> str:
        return _within(self._image.symbol_at(address) or self._image.labels.get(address), address)

    def _thread_local(self, offset: int) -> str:
        held = (one for one in self._image.thread_locals if one.address <= offset < one.address + one.size)
        return _within(next(held, None), offset)

    def _stub(self, address: int) -> str:
        """The import that a stub of the linkage table jumps to; empty for other code."""
        if address not in self._stubs:
            code = self._image.bytes_at(address, STUB_BYTES)
            slots = (
                self._image.slots.get(instruction.ip_rel_memory_address)
                for instruction in Decoder(BITS, code, ip=address)
                if instruction.is_ip_rel_memory_operand
            )
            first = next(slots, None)
            self._stubs[address] = "" if first is None else self.slot_text(first)
        return self._stubs[address]

    def _table(self, address: int, start: int, end: int) -> str:
        """The targets of a jump table: distances from the table of four bytes each, or in a program of a
        fixed place perhaps addresses. Empty for what is none."""
        distances = self._targets(address, 4, address, start, end)
        return distances or ("" if self._image.movable else self._targets(address, WORD_BYTES, 0, start, end))

    def _targets(self, table: int, width: int, origin: int, start: int, end: int) -> str:
        """The entries of a table of that width as long as they lead to code of the same function: a constant
        may look like a distance to another one."""
        content = self._image.bytes_at(table, self._extent(table, TABLE_ENTRIES_MOST * width))
        targets: list[str] = []
        for at in range(0, len(content) - width + 1, width):
            target = origin + int.from_bytes(content[at : at + width], "little", signed=True)
            section = self._image.section_at(target)
            if section is None or not section.executable:
                break
            if start <= target < end:
                targets.append(f"+{target - start:x}")
            elif self._same_function(target, start):
                targets.append(self._name(target) or section.name)
            else:
                break
        return " ".join(targets)

    def _same_function(self, address: int, start: int) -> bool:
        """Whether code may be a part, elsewhere, of the function that begins at `start`."""
        its, own = self._image.symbol_at(address), self._image.symbol_at(start)
        return its is None or own is None or base_name(its.name) == base_name(own.name)

    def _constant(self, address: int, size: int) -> bytes:
        """As many bytes as the operand has, else a text, else all up to the next thing that is referred
        to."""
        if size > NO_SIZE:
            return self._image.bytes_at(address, size)
        content = self._image.bytes_at(address, self._extent(address, CONSTANT_BYTES_MOST))
        text = TEXT.match(content)
        return text[0] if text else content.rstrip(b"\0")

    def _extent(self, address: int, most: int) -> int:
        """Bytes up to the next thing that anything refers to."""
        at = bisect.bisect_right(self._beginnings, address)
        following = self._beginnings[at] if at < len(self._beginnings) else address + most
        return min(most, following - address)


def _within(symbol: Symbol | None, address: int) -> str:
    """A symbol's name, with the distance from its beginning where there is one; empty without one."""
    if symbol is None:
        return ""
    distance = address - symbol.address
    return f"{base_name(symbol.name)}+{distance:x}" if distance else base_name(symbol.name)
