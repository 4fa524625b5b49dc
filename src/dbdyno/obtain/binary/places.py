"""What an address refers to, said without the address: a name, an import, a jump table, a constant's bytes.

Two builds put the same things at other addresses, so only what is said here is compared.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator

from iced_x86 import Decoder

from dbdyno.obtain.binary.decode import BITS, BRANCH, NO_SIZE, THREAD_LOCAL, Reference
from dbdyno.obtain.binary.image import WORD_BYTES, Image, Slot, Symbol
from dbdyno.records.symbols import base_name

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

    def told(self, reference: Reference, start: int, end: int) -> tuple[str, bytes]:
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
