"""The fingerprint: plain, stable, and without side effects."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dbdyno.host.fingerprint import Host, Installed, core_count, find_library, fingerprint, library_of


def test_the_fingerprint_is_json_and_names_what_was_measured(homes: Path) -> None:
    found = fingerprint()
    assert Host.model_validate_json(found.model_dump_json()) == found
    assert found.cpu.usable_cores == core_count() >= 1
    assert found.memory.total_bytes is not None and found.memory.total_bytes > 1 << 20
    assert found.kernel == os.uname().release
    assert found.data.filesystem


def test_the_fingerprint_is_the_same_a_moment_later(homes: Path) -> None:
    first, second = (
        found.but(data=found.data.but(free_bytes=None), cpu=found.cpu.but(frequency_mhz=None))
        for found in (fingerprint(), fingerprint())
    )
    assert first == second


def test_facts_are_written_as_they_were_read() -> None:
    """Those of another version too; and what nobody looked at is no null."""
    for read in ({}, {"cpu": {"model": None, "threads": 32}, "kernel": None, "storage": [{"device": "sda"}]}):
        assert Host.model_validate(read).model_dump() == read
    told = {"engine": "sqlite", "version": "3.53", "origin": "a wheel", "digest": "ab", "threads": "safe"}
    assert Installed.model_validate(told).model_dump() == told


@pytest.mark.parametrize(
    ("here", "told"),
    [
        (("libmimalloc.so.3",), ("libmimalloc.so.3", "apt-get install libmimalloc3")),
        (("libmimalloc.so.2",), ("libmimalloc.so.2", "apt-get install libmimalloc2.0")),
        (
            (),
            ("libmimalloc.so.3", "apt-get install libmimalloc3, or libmimalloc2.0 on an older release"),
        ),
    ],
)
def test_an_allocator_is_found_by_the_name_of_each_release(
    here: tuple[str, ...], told: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in here:
        (tmp_path / name).touch()
    monkeypatch.setattr(sys.modules[library_of.__module__], "FOLDERS", (str(tmp_path),))
    assert library_of("mimalloc") == told
    assert (find_library("mimalloc") is not None) is bool(here)
