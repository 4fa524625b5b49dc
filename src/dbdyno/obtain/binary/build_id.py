"""The build id that a linker wrote into a program or a library."""

from __future__ import annotations

from pathlib import Path


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
