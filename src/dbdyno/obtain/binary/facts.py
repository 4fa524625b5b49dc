"""What a build tells of itself: its build id, its compilers and their flags, its protections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from elftools.elf.elffile import ELFFile

from dbdyno.records.binary import Hardening, Relro

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
