"""Which libraries a program or a library asks its loader for."""

from __future__ import annotations

from pathlib import Path

from dbdyno.errors import DynoError


def needed(file: Path) -> tuple[str, ...]:
    """By their names; none for a static program. Raises DynoError for a file that cannot be read, or is no
    ELF file."""
    # Here, because every command would wait for it.
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    from dbdyno.obtain.binary.facts import libraries

    try:
        with file.open("rb") as opened:
            return libraries(ELFFile(opened))
    except (OSError, ELFError) as error:
        raise DynoError(f"{file} is no program: {error}", "remove its folder and fetch it again") from None
