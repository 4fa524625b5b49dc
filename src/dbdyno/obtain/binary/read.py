"""Reads a program or a library: its functions and data without addresses, and what it tells of itself."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from dbdyno.errors import UserError
from dbdyno.obtain.binary import facts
from dbdyno.obtain.binary.decode import Decoded, Uses, decoded
from dbdyno.obtain.binary.image import WORD_BYTES, Image, Section, read_image
from dbdyno.obtain.binary.names import source_name
from dbdyno.obtain.binary.places import Places
from dbdyno.obtain.path import digest
from dbdyno.records.binary import Binary, Code, Datum, Function, Kind

MACHINE = "EM_X86_64"
LINKED = {"ET_EXEC": Kind.PROGRAM, "ET_DYN": Kind.LIBRARY}
DIGEST_BYTES = 16
WHOLE = (".rodata", ".data", ".data.rel.ro")
"""The sections that stand for the data of a stripped file."""


def read_pair(left: Path, right: Path) -> tuple[Code, Code]:
    """Two builds, read alike: where one of them is stripped, the other's names are not used either, because
    what an address refers to is said by name."""
    one, other = read_code(left), read_code(right)
    if one.binary.named and not other.binary.named:
        one = read_code(left, with_names=False)
    elif other.binary.named and not one.binary.named:
        other = read_code(right, with_names=False)
    return one, other


def read_code(path: Path, with_names: bool = True) -> Code:
    """The code of a program or shared library of x86-64. Raises UserError for every other file."""
    try:
        with path.open("rb") as file:
            return _read(path, file, with_names)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", "give the path of a program or a shared library"
        ) from None
    except UserError:
        raise
    except Exception as error:
        # A damaged file can make its reader stumble over anything.
        raise UserError(
            f"{path} is no whole ELF file: {str(error).strip() or type(error).__name__}",
            "give the path of a program or a shared library, not of a script or an archive",
        ) from None


def _read(path: Path, file: Any, with_names: bool) -> Code:
    elf = ELFFile(file)
    _require_whole_build(path, elf)
    kind = Kind.PROGRAM if facts.is_program(elf) else LINKED[elf["e_type"]]
    image = read_image(elf, with_names)
    uses = Uses()
    found = [decoded(image, section, name, start, end, uses) for section, name, start, end in _spans(image)]
    places = Places(image, (address for one in found for address, _ in one.references))
    binary = Binary(
        path=str(path),
        digest=digest(path),
        kind=kind,
        build_id=facts.build_id(elf),
        compilers=facts.compilers(elf),
        producers=facts.producers(elf),
        libraries=facts.libraries(elf),
        sections={section.name: section.size for section in image.sections},
        hardening=facts.hardening(elf),
        extensions=uses.extensions(),
        named=image.named,
        functions=len(found),
        instructions=sum(one.instructions for one in found),
        code_bytes=sum(one.end - one.start for one in found),
    )
    functions = tuple(function_of(one, places) for one in found)
    return Code(binary, functions, tuple(_data(image, places)))


def _require_whole_build(path: Path, elf: Any) -> None:
    if elf["e_machine"] != MACHINE:
        raise UserError(
            f"{path} is built for {elf['e_machine']}", "builds are compared by their code for x86-64 alone"
        )
    if elf["e_type"] not in LINKED:
        raise UserError(
            f"{path} is not linked ({elf['e_type']})",
            "give the program or the library that it is linked into",
        )
    held = (section for section in elf.iter_sections() if section["sh_type"] != "SHT_NOBITS")
    if any(section["sh_offset"] + section["sh_size"] > elf.stream_len for section in held):
        raise UserError(f"{path} is cut off: it has {elf.stream_len:,} bytes", "obtain or build it again")


def _spans(image: Image) -> Iterator[tuple[Section, str, int, int]]:
    """Section, name, first and one past the last address of each function. Where there is neither a symbol
    nor an unwinder's table, a section of code is one."""
    functions = [symbol for symbol in image.symbols if symbol.function]
    named = [(source_name(symbol.name), symbol.address, symbol.address + symbol.size) for symbol in functions]
    if not image.named:
        names = {start: name for name, start, _ in named}
        named = [(names.get(start, ""), start, end) for start, end in image.ranges] or named
    for name, start, end in named:
        section = image.section_at(start)
        if section is not None and section.executable and not section.name.startswith(".plt"):
            yield section, name, start, min(end, section.address + section.size)
    if not named:
        for section in image.sections:
            if section.executable and not section.name.startswith(".plt"):
                yield section, "", section.address, section.address + section.size


def function_of(one: Decoded, places: Places) -> Function:
    told = [places.told(reference, one.start, one.end) for reference in one.references]
    return Function(
        name=one.name,
        size=one.end - one.start,
        instructions=one.instructions,
        code=_digest(one.content, *(text.encode() for text, _ in told)),
        constants=_digest(*(constant for _, constant in told)),
    )


def _data(image: Image, places: Places) -> Iterator[Datum]:
    """Every named object; of a stripped file, its sections."""
    things = [
        (source_name(symbol.name), symbol.address, symbol.size)
        for symbol in image.symbols
        if not symbol.function and image.named
    ] or [
        (section.name, section.address, section.size) for section in image.sections if section.name in WHOLE
    ]
    for name, address, size in things:
        yield Datum(name, size, _value(image, places, address, size))


def _value(image: Image, places: Places, address: int, size: int) -> bytes:
    """A digest of an object's first value, in which a word that the loader fills stands for its target."""
    content = bytearray(image.bytes_at(address, size))
    told: list[bytes] = []
    for at, text in _pointers(image, places, address, bytes(content)):
        content[at : at + WORD_BYTES] = bytes(WORD_BYTES)
        told.append(f"{at:x} {text}".encode())
    return _digest(bytes(content), *told)


def _pointers(image: Image, places: Places, address: int, content: bytes) -> Iterator[tuple[int, str]]:
    """Where in an object an address stands, and what it refers to. A program of a fixed place has no slots:
    there a word that could be an address is one."""
    if image.movable:
        slots = image.slot_addresses
        for slot in slots[bisect_left(slots, address) : bisect_left(slots, address + len(content))]:
            yield slot - address, places.slot_text(image.slots[slot])
        return
    for at in range(-address % WORD_BYTES, len(content) - WORD_BYTES + 1, WORD_BYTES):
        word = int.from_bytes(content[at : at + WORD_BYTES], "little")
        if image.section_at(word) is not None:
            yield at, places.target_text(word)


def _digest(*parts: bytes) -> bytes:
    """Of parts in their order, with their lengths, so that no two lists share one."""
    made = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()
