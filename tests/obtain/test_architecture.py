"""What a program's file says of the machine it is made for, and what runs it here."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.obtain import architecture as module
from dbdyno.obtain.architecture import ARCHITECTURES, Header, architecture, elf_header, emulator, emulator_of


def program(folder: Path, machine: int, big_endian: bool = False, alignments: tuple[int, ...] = ()) -> Path:
    """The head of a program: the ELF header, and a part for each alignment."""
    order = ">" if big_endian else "<"
    start = b"\x7fELF\2" + (b"\2" if big_endian else b"\1") + bytes(10)
    start += struct.pack(
        f"{order}HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, len(alignments), 0, 0, 0
    )
    parts = (struct.pack(f"{order}IIQQQQQQ", 1, 5, 0, 0, 0, 0, 0, one) for one in alignments)
    file = folder / f"program-{machine}"
    file.write_bytes(start + b"".join(parts))
    return file


def test_a_header_is_read_in_its_own_byte_order(tmp_path: Path) -> None:
    assert elf_header(program(tmp_path, 22, big_endian=True, alignments=(4096,))) == Header(22, True, 4096)
    found = elf_header(program(tmp_path, 21, alignments=(4096, 65536, 16)))
    assert (found.machine, found.byte_order, found.alignment_bytes) == (21, "little", 65536)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\1\1" + bytes(80), b"\x7fELF\2\1"])
def test_what_is_no_64_bit_program_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(DynoError, match="is no program"):
        elf_header(file)
    assert emulator_of(file) == ()


def test_this_machines_own_programs_need_no_emulator() -> None:
    own = module.of_this_machine()
    assert own is not None and own.kernel == os.uname().machine
    assert emulator(own.name) == ()
    assert emulator_of(Path(sys.executable).resolve()) == ()


def test_an_architecture_that_dyno_does_not_know_is_told_with_the_others() -> None:
    with pytest.raises(UserError, match="'vax' is no architecture") as refused:
        architecture("vax")
    assert refused.value.hint == f"there are: {', '.join(ARCHITECTURES)}"


def test_a_missing_emulator_is_told_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    foreign = next(one for one in ARCHITECTURES.values() if one != module.of_this_machine())
    emulator.cache_clear()
    with pytest.raises(UserError, match=f"qemu-{foreign.emulator}-static is not installed") as refused:
        emulator(foreign.name)
    assert module.PACKAGE in refused.value.hint


def test_a_program_of_another_machine_is_run_by_its_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = next(one for one in ARCHITECTURES.values() if one != module.of_this_machine())
    stand_in = tmp_path / f"qemu-{foreign.emulator}-static"
    stand_in.write_text("#!/bin/sh\necho 'qemu-x version 7.2.22 (Debian 1:7.2)'\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    for cached in (emulator, emulator_of, module.emulator_version):
        cached.cache_clear()
    assert emulator_of(program(tmp_path, foreign.machine)) == (str(stand_in),)
    assert module.emulator_version(foreign.name) == f"{stand_in.name} 7.2.22"
    for cached in (emulator, emulator_of, module.emulator_version):
        cached.cache_clear()
