"""Reads a program or a library: its functions and data without addresses, and what it tells of itself.

The build id that a linker wrote into a program or a library.

Which libraries a program or a library asks its loader for.

The names of functions and objects as a programmer writes them.
"""

from __future__ import annotations

import ctypes
import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from dbdyno.errors import DynoError, UserError
from dbdyno.obtain.binary.image import WORD_BYTES, Image, ImageSection, read_image
from dbdyno.obtain.binary.places import Decoded, Places, Uses, decoded, without_padding
from dbdyno.obtain.path import digest_of_binary
from dbdyno.records.binary import Binary, Code, Datum, ElfKind, Function, Hardening, Relro, base_name

PRODUCERS_MOST = 8
"""A build of several languages has as many producers; further ones are of parts that were built elsewhere."""
EXECUTABLE_SEGMENT = 0x1
BIND_NOW, NOW, PROGRAM = 0x8, 0x1, 0x0800_0000
BRANCH_TRACKING, SHADOW_STACK = 0x1, 0x2
STACK_CHECK = "__stack_chk_fail"


def is_program(elf: ELFFile) -> bool:
    """Whether it is started rather than loaded. A program that can be moved has the type of a library."""
    asks_for_loader = any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments())
    return asks_for_loader or elf["e_type"] == "ET_EXEC" or bool(_flags(elf, "DT_FLAGS_1") & PROGRAM)


def build_id(elf: ELFFile) -> str:
    """The linker's own identification of the build; empty where it made none."""
    return next((note["n_desc"] for note in _notes(elf) if note["n_type"] == "NT_GNU_BUILD_ID"), "")


def compilers(elf: ELFFile) -> tuple[str, ...]:
    """The compilers of all parts, those of the C library's start code included."""
    return _lines(elf, ".comment")


def producers(elf: ELFFile) -> tuple[str, ...]:
    """Compilers with their flags, the most frequent first: of `-frecord-gcc-switches`, else of the debugging
    information; none where neither was kept."""
    if recorded := _lines(elf, ".GCC.command.line"):
        return recorded[:PRODUCERS_MOST]
    if elf.get_section_by_name(".debug_info") is None:
        return ()
    found: Counter[str] = Counter()
    for unit in elf.get_dwarf_info().iter_CUs():
        producer = unit.get_top_DIE().attributes.get("DW_AT_producer")
        if producer is not None:
            found[_text(producer.value)] += 1
    return tuple(name for name, _ in found.most_common(PRODUCERS_MOST))


def libraries(elf: ELFFile) -> tuple[str, ...]:
    """The libraries that the loader must find."""
    return tuple(tag.needed for tag in _dynamic(elf) if tag["d_tag"] == "DT_NEEDED")


def hardening(elf: ELFFile) -> Hardening:
    """The protections that the file shows."""
    segments = {segment["p_type"]: segment["p_flags"] for segment in elf.iter_segments()}
    imports = {symbol for name in (".dynsym", ".symtab") for symbol in _symbols(elf, name)}
    features = _features(elf)
    return Hardening(
        position_independent=elf["e_type"] == "ET_DYN",
        relro=_relro(elf, "PT_GNU_RELRO" in segments),
        stack_protector=any(name.startswith(STACK_CHECK) for name in imports),
        fortified=len({name for name in imports if name.startswith("__") and name.endswith("_chk")}),
        branch_tracking=bool(features & BRANCH_TRACKING),
        shadow_stack=bool(features & SHADOW_STACK),
        # The kernel makes the stack executable where nothing forbids it.
        executable_stack=bool(segments.get("PT_GNU_STACK", EXECUTABLE_SEGMENT) & EXECUTABLE_SEGMENT),
    )


def _relro(elf: ELFFile, there: bool) -> Relro:
    if not there:
        return Relro.NONE
    at_once = (
        _flags(elf, "DT_FLAGS") & BIND_NOW
        or _flags(elf, "DT_FLAGS_1") & NOW
        or any(tag["d_tag"] == "DT_BIND_NOW" for tag in _dynamic(elf))
    )
    return Relro.FULL if at_once else Relro.PARTIAL


def _features(elf: ELFFile) -> int:
    """The features of x86 that all parts of the build share."""
    for note in _notes(elf):
        if note["n_type"] == "NT_GNU_PROPERTY_TYPE_0":
            for one in note["n_desc"]:
                if one["pr_type"] == "GNU_PROPERTY_X86_FEATURE_1_AND":
                    return int(one["pr_data"])
    return 0


def _symbols(elf: ELFFile, table: str) -> Iterator[str]:
    section = elf.get_section_by_name(table)
    if section is not None:
        yield from (_text(name) for name in elf.get_section(section["sh_link"]).data().split(b"\0"))


def _dynamic(elf: ELFFile) -> Iterator[Any]:
    section: Any = elf.get_section_by_name(".dynamic")
    return iter(()) if section is None else section.iter_tags()


def _flags(elf: ELFFile, tag: str) -> int:
    return next((int(one["d_val"]) for one in _dynamic(elf) if one["d_tag"] == tag), 0)


def _notes(elf: ELFFile) -> Iterator[Any]:
    sections: Iterator[Any] = elf.iter_sections()
    for section in sections:
        if section["sh_type"] == "SHT_NOTE":
            yield from section.iter_notes()


def _lines(elf: ELFFile, name: str) -> tuple[str, ...]:
    """The texts of a section that the linker merged, each once."""
    section = elf.get_section_by_name(name)
    if section is None:
        return ()
    return tuple(dict.fromkeys(_text(line) for line in section.data().split(b"\0") if line))


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


MANGLED = "_Z"
LIBRARY = "libstdc++.so.6"


@cache
def source_name(name: str) -> str:
    """The name as a programmer writes it: `THD::reset()` for `_ZN3THD5resetEv.part.0`. A name of C++ stays as
    it is on a machine without its library."""
    base = base_name(name)
    demangle = _demangler() if base.startswith(MANGLED) else None
    return (demangle(base) if demangle else "") or base


@cache
def _demangler() -> Callable[[str], str] | None:
    """Asks the library of C++, which gives a text that the caller frees, or nothing."""
    try:
        function = ctypes.CDLL(LIBRARY).__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]

    def demangle(name: str) -> str:
        told = function(name.encode(), None, None, None)
        text = ctypes.string_at(told).decode(errors="replace") if told else ""
        free(told)
        return text

    return demangle


def needed_libraries(file: Path) -> tuple[str, ...]:
    """By their names; none for a static program. Raises DynoError for a file that cannot be read, or is no
    ELF file."""
    # Here, because every command would wait for it.
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with file.open("rb") as opened:
            return libraries(ELFFile(opened))
    except (OSError, ELFError) as error:
        raise DynoError(f"{file} is no program: {error}", "remove its folder and fetch it again") from None


@cache
def compilers_of(file: Path) -> tuple[str, ...]:
    """`compilers` of a file; none for one that is no ELF file, or of which a packager took their names."""
    from elftools.common.exceptions import ELFError

    try:
        with file.open("rb") as stream:
            return compilers(ELFFile(stream))
    except (OSError, ELFError):
        return ()


def build_id_of(file: Path) -> str:
    """In hexadecimal; empty for a file without one, and for one that is no ELF file."""
    # Here, because the layers of every study come through here, and few studies read a program.
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import NoteSection

    try:
        with file.open("rb") as stream:
            sections = [one for one in ELFFile(stream).iter_sections() if isinstance(one, NoteSection)]
            notes = [note for section in sections for note in section.iter_notes()]
    except (OSError, ELFError):
        return ""
    return next((str(note["n_desc"]) for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"), "")


MACHINE = "EM_X86_64"
LINKED = {"ET_EXEC": ElfKind.PROGRAM, "ET_DYN": ElfKind.LIBRARY}
DIGEST_BYTES = 16
BEFORE_BOLT, MOVED_AWAY = ".bolt.org", ".org.0"
"""The section of the code that BOLT found, and how it calls the functions there that it moved. Nothing leads
to them any more, nor to what has no name there."""
WHOLE = (".rodata", ".data", ".data.rel.ro", ".tdata")
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
    kind = ElfKind.PROGRAM if is_program(elf) else LINKED[elf["e_type"]]
    image = read_image(elf, with_names)
    uses = Uses()
    found = [decoded(image, section, name, start, end, uses) for section, name, start, end in _spans(image)]
    places = Places(image, (address for one in found for address, _ in one.references))
    binary = Binary(
        path=str(path),
        digest=digest_of_binary(path),
        kind=kind,
        build_id=build_id(elf),
        compilers=compilers(elf),
        producers=producers(elf),
        libraries=libraries(elf),
        sections={section.name: section.size for section in image.sections},
        hardening=hardening(elf),
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
            f"{path} is built for {elf.get_machine_arch()}, and Dyno reads code for x86-64 alone",
            "name builds for x86-64; a study compares the speed of builds on every machine",
        )
    if elf["e_type"] not in LINKED:
        raise UserError(
            f"{path} is not linked ({elf['e_type']})",
            "give the program or the library that it is linked into",
        )
    held = (section for section in elf.iter_sections() if section["sh_type"] != "SHT_NOBITS")
    if any(section["sh_offset"] + section["sh_size"] > elf.stream_len for section in held):
        raise UserError(f"{path} is cut off: it has {elf.stream_len:,} bytes", "obtain or build it again")


def _spans(image: Image) -> Iterator[tuple[ImageSection, str, int, int]]:
    """Section, name, first and one past the last address of each function, and of what lies between them:
    code of an assembler's file may have no size, or no name."""
    functions = [symbol for symbol in image.symbols if symbol.function]
    named = [(source_name(symbol.name), symbol.address, symbol.address + symbol.size) for symbol in functions]
    if not image.named:
        names = {start: name for name, start, _ in named}
        named = [(names.get(start, ""), start, end) for start, end in image.ranges] or named
    moved = {symbol.address for symbol in functions if symbol.name.endswith(MOVED_AWAY)}
    for section in image.sections:
        if section.executable and not section.name.startswith(".plt"):
            ends = section.address + section.size
            own = [(name, start, min(end, ends)) for name, start, end in named if _holds(section, start)]
            more = () if section.name.startswith(BEFORE_BOLT) else _between(image, section, own)
            for name, start, end in [*own, *more]:
                if start not in moved:
                    yield section, name, start, end


def _holds(section: ImageSection, address: int) -> bool:
    return section.address <= address < section.address + section.size


def _between(
    image: Image, section: ImageSection, functions: Sequence[tuple[str, int, int]]
) -> Iterator[tuple[str, int, int]]:
    """The code of a section that is in none of these functions, without its padding. A label begins another
    piece, and names it."""
    labels = sorted(label.address for label in image.labels.values() if label.function)
    ends = section.address + section.size
    free = section.address
    for start, end in [*sorted((start, end) for _, start, end in functions), (ends, ends)]:
        if free < start:
            within = labels[bisect_right(labels, free) : bisect_left(labels, start)]
            for first, last in pairwise([free, *within, start]):
                if code := without_padding(image.bytes_at(first, last - first), first):
                    label = image.labels.get(first)
                    yield source_name(label.name) if label else "", *code
        free = max(free, end)


def function_of(one: Decoded, places: Places) -> Function:
    told = [places.told(reference, one.start, one.end) for reference in one.references]
    return Function(
        name=one.name,
        size=one.end - one.start,
        instructions=one.instructions,
        code=_digest(one.content, *(text.encode() for text, _ in told)),
        constants=_digest(*(constant for _, constant in told)),
        address=one.start,
    )


def _data(image: Image, places: Places) -> Iterator[Datum]:
    """Every named object and every variable of a thread; of a stripped file, its sections."""
    things = [
        (source_name(symbol.name), symbol.address, symbol.size)
        for symbol in image.symbols
        if not symbol.function and image.named
    ] or [
        (section.name, section.address, section.size) for section in image.sections if section.name in WHOLE
    ]
    for name, address, size in things:
        yield Datum(name, size, _value(image, places, address, size))
    for symbol in image.thread_locals if image.named else ():
        address = image.first_values.pointer + symbol.address
        held = symbol.size if address < image.first_values.end else 0
        yield Datum(source_name(symbol.name), symbol.size, _value(image, places, address, held))


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
