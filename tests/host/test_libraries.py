"""Shared libraries of the host, and of a process."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from dbdyno.host import fingerprint


def test_a_library_of_the_host_is_found_by_its_file_name() -> None:
    found = fingerprint.find("libc.so.6")
    assert found is None or (found.is_file() and found in fingerprint.mapped(os.getpid()))
    assert fingerprint.find("libnothing-of-that-name.so") is None


def test_a_process_holds_what_it_has_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_text("bytes")
    assert path not in fingerprint.mapped(os.getpid())
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ):
        assert path in fingerprint.mapped(os.getpid())
        path.unlink()
        assert path not in fingerprint.mapped(os.getpid())
    assert path not in fingerprint.mapped(os.getpid())
