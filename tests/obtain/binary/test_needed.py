"""A program's libraries are those that its file names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dbdyno.errors import DynoError
from dbdyno.obtain.binary.needed import needed


def test_a_program_names_its_c_library() -> None:
    assert "libc.so.6" in needed(Path(sys.executable))


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    with pytest.raises(DynoError, match="is no program"):
        needed(text)
