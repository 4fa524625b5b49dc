"""An ELF file by address: its sections, symbols, the slots that the loader fills, the ranges of functions.

Tables of many thousand rows are read with numpy, because a server has 60,000 symbols.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("slot", "<u8"), ("info", "<u8"), ("addend", "<i8")])
WORD_BYTES = 8
OBJECT, FUNCTION, THREAD_LOCAL, INDIRECT_FUNCTION = 1, 2, 6, 10
LOCAL = 0
RESERVED_SECTIONS = 0xFF00
ALLOCATED, WRITABLE, EXECUTABLE = 0x2, 0x1, 0x4
PACKED_RELOCATIONS = ("SHT_RELR", 19)
UNWINDER_TABLE = bytes((1, 0x1B, 0x03, 0x3B))
"""The version and encodings of `.eh_frame_hdr` that GNU's and LLVM's linkers write."""


class ImageSection(NamedTuple):
    """A part of the file that is loaded. `content` is empty where the file holds none (`.bss`)."""

    name: str
    address: int
    size: int
    content: bytes
    writable: bool
    executable: bool


class Symbol(NamedTuple):
    """A named function or object. Thread-local ones count from the thread pointer."""

    name: str
    address: int
    size: int
    function: bool


class FirstValues(NamedTuple):
    """The part of the file that the variables of every thread begin with. `pointer` is where the thread
    pointer would stand beside it; from `end` on the file holds no values."""

    pointer: int = 0
    end: int = 0


NO_VALUES = FirstValues()


class Slot(NamedTuple):
    """What the loader writes into a word: the address of a `symbol`, else that of `target`."""

    symbol: str
    target: int


@dataclass(frozen=True)
class Image:
    """A file as it is loaded. `symbols` are by address, one for each; without `named` they are exports alone,
    and a file that is not `movable` has a fixed address.
    `ranges` are the functions that the unwinder knows, first and one past the last address. `labels` are
    symbols without a size, by address, and `first_values` are those of `thread_locals`."""

    sections: tuple[ImageSection, ...]
    symbols: tuple[Symbol, ...]
    thread_locals: tuple[Symbol, ...]
    slots: dict[int, Slot]
    ranges: tuple[tuple[int, int], ...]
    named: bool
    movable: bool
    labels: Mapping[int, Symbol] = field(default_factory=dict)
    first_values: FirstValues = NO_VALUES

    @cached_property
    def _section_starts(self) -> list[int]:
        return [section.address for section in self.sections]

    @cached_property
    def _symbol_starts(self) -> list[int]:
        return [symbol.address for symbol in self.symbols]

    @cached_property
    def slot_addresses(self) -> list[int]:
        return sorted(self.slots)

    def section_at(self, address: int) -> ImageSection | None:
        """The section that holds an address."""
        at = bisect.bisect_right(self._section_starts, address) - 1
        if at < 0:
            return None
        found = self.sections[at]
        return found if address < found.address + found.size else None

    def could_be_address(self, value: int) -> bool:
        """Whether a number in the code of a program of a fixed place looks like an address: one in data, or
        the first of a function."""
        section = self.section_at(value)
        return section is not None and (not section.executable or value in self._entries)

    @cached_property
    def _entries(self) -> frozenset[int]:
        return frozenset([*self._symbol_starts, *(start for start, _ in self.ranges)])

    def symbol_at(self, address: int) -> Symbol | None:
        """The symbol that holds an address."""
        at = bisect.bisect_right(self._symbol_starts, address) - 1
        if at < 0:
            return None
        found = self.symbols[at]
        return found if address < found.address + found.size else None

    def bytes_at(self, address: int, size: int) -> bytes:
        """Bytes of the file, as many as the section still has; none where it holds none."""
        section = self.section_at(address)
        if section is None:
            return b""
        at = address - section.address
        return section.content[at : at + size]


def read_image(elf: Any, with_names: bool) -> Image:
    """The image of an ELF file that pyelftools has opened; on demand as if it were stripped."""
    sections = tuple(sorted(_sections(elf), key=lambda section: section.address))
    table = elf.get_section_by_name(".symtab") if with_names else None
    rows = _rows(elf, table or elf.get_section_by_name(".dynsym"))
    symbols = _by_address(rows)
    thread_locals, first_values = _thread_locals(elf, rows)
    bare = Image(
        sections=sections,
        symbols=tuple(symbol for symbol in symbols if symbol.size),
        thread_locals=thread_locals,
        slots={},
        ranges=(),
        named=table is not None,
        movable=elf["e_type"] == "ET_DYN",
        labels={symbol.address: symbol for symbol in symbols if not symbol.size},
        first_values=first_values,
    )
    slots = {**_slots(elf), **_packed_slots(elf, bare)}
    return replace(bare, slots=slots, ranges=tuple(_ranges(elf, bare)))


def _sections(elf: Any) -> Iterator[ImageSection]:
    for section in elf.iter_sections():
        flags, kind = section["sh_flags"], section["sh_type"]
        # Thread-local sections without content overlap whatever follows them.
        if flags & ALLOCATED and section["sh_size"] and section.name != ".tbss":
            yield ImageSection(
                name=section.name,
                address=section["sh_addr"],
                size=section["sh_size"],
                content=b"" if kind == "SHT_NOBITS" else section.data(),
                writable=bool(flags & WRITABLE),
                executable=bool(flags & EXECUTABLE),
            )


def _rows(elf: Any, table: Any) -> list[tuple[str, int, int, int, int, int]]:
    """Name, kind, binding, section, value and size of each symbol of a table."""
    if table is None:
        return []
    names = elf.get_section(table["sh_link"]).data()
    rows = np.frombuffer(table.data(), SYMBOL)
    return [
        (_text(names, name), info & 15, info >> 4, section, value, size)
        for name, info, _, section, value, size in rows.tolist()
    ]


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace")


def _by_address(rows: list[tuple[str, int, int, int, int, int]]) -> tuple[Symbol, ...]:
    """One symbol for each address: of several names one with a size, then an exported one, then the first of
    the alphabet."""
    found = [
        (value, not size, binding == LOCAL, name, size, kind)
        for name, kind, binding, section, value, size in rows
        if kind in (OBJECT, FUNCTION, INDIRECT_FUNCTION) and 0 < section < RESERVED_SECTIONS
    ]
    first: dict[int, Symbol] = {}
    for value, _, _, name, size, kind in sorted(found):
        first.setdefault(value, Symbol(name, value, size, kind != OBJECT))
    return tuple(first.values())


def _thread_locals(
    elf: Any, rows: list[tuple[str, int, int, int, int, int]]
) -> tuple[tuple[Symbol, ...], FirstValues]:
    segment = next((one for one in elf.iter_segments() if one["p_type"] == "PT_TLS"), None)
    if segment is None:
        return (), NO_VALUES
    align = max(segment["p_align"], 1)
    end = -(-segment["p_memsz"] // align) * align
    found = [
        Symbol(name, value - end, size, False)
        for name, kind, _, section, value, size in rows
        if kind == THREAD_LOCAL and section
    ]
    first = segment["p_vaddr"]
    held = FirstValues(pointer=first + end, end=first + segment["p_filesz"])
    return tuple(sorted(found, key=lambda symbol: symbol.address)), held


def _slots(elf: Any) -> dict[int, Slot]:
    slots: dict[int, Slot] = {}
    for section in elf.iter_sections():
        if section["sh_type"] != "SHT_RELA" or not section["sh_flags"] & ALLOCATED:
            continue
        linked = elf.get_section(section["sh_link"]) if section["sh_link"] else None
        symbols = _rows(elf, linked)
        for slot, info, addend in np.frombuffer(section.data(), RELOCATION).tolist():
            index = info >> 32
            symbol, value = (symbols[index][0], symbols[index][4]) if index else ("", 0)
            slots[slot] = Slot(symbol, value + addend)
    return slots


def _packed_slots(elf: Any, image: Image) -> dict[int, Slot]:
    """The slots of `.relr.dyn`: an even word is a slot, an odd one has a bit for each of the 63 words after
    it. The target stands in the slot itself."""
    addresses: list[int] = []
    for section in elf.iter_sections():
        if section["sh_type"] not in PACKED_RELOCATIONS:
            continue
        following = 0
        for word in np.frombuffer(section.data(), "<u8").tolist():
            if word & 1:
                addresses += [following + WORD_BYTES * bit for bit in range(63) if word >> (bit + 1) & 1]
                following += 63 * WORD_BYTES
            else:
                addresses.append(word)
                following = word + WORD_BYTES
    contents = ((slot, image.bytes_at(slot, WORD_BYTES)) for slot in addresses)
    return {slot: Slot("", int.from_bytes(content, "little")) for slot, content in contents}


def _ranges(elf: Any, image: Image) -> Iterator[tuple[int, int]]:
    """The functions of the unwinder's table, which a stripped file has as well. Both linkers write a sorted
    index of it, whose entries lead to descriptions: length, back reference, start, size, four bytes each."""
    header = elf.get_section_by_name(".eh_frame_hdr")
    content = b"" if header is None else header.data()
    if not content.startswith(UNWINDER_TABLE):
        return
    base, count = header["sh_addr"], int.from_bytes(content[8:12], "little")
    for start, description in np.frombuffer(content, "<i4", 2 * count, 12).reshape(-1, 2).tolist():
        found = image.bytes_at(base + description, 16)
        begins = int.from_bytes(found[8:12], "little", signed=True) + base + description + 8
        size = int.from_bytes(found[12:16], "little")
        if begins == base + start and size:
            yield begins, begins + size
