"""The platform layer: whose levels it takes, and what proves one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dbdyno.driver.job import Job
from dbdyno.engines import registry
from dbdyno.engines.registry import ENGINES
from dbdyno.errors import Blocked
from dbdyno.host.journal import open_journal
from dbdyno.layers.platform import (
    FULL,
    KEXEC,
    MACHINE,
    PATIENCE,
    PLATFORM,
    OnPlatform,
    proved_by_console,
    proved_by_file,
)
from dbdyno.layers.setup import Setup
from dbdyno.obtain.architecture import ARCHITECTURES, emulator, emulator_version, of_this_machine
from dbdyno.obtain.cross import Platforms
from dbdyno.obtain.installation import Installation
from dbdyno.records.reset import Reset
from dbdyno.study import Factor
from dbdyno.study.nouns import MACHINE_FACTOR, PLATFORM_FACTOR
from tests.analyse.machine_cases import reset

FOREIGN = next(one.name for one in ARCHITECTURES.values() if one != of_this_machine())


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that stands for the emulator of the other architecture."""
    stand_in = tmp_path / f"qemu-{ARCHITECTURES[FOREIGN].emulator}-static"
    stand_in.write_text("#!/bin/sh\necho 'qemu-x version 7.2.22'\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for cached in (emulator, emulator_version):
        cached.cache_clear()
    yield
    for cached in (emulator, emulator_version):
        cached.cache_clear()


def factor(*levels: str) -> Factor:
    return Factor(name=PLATFORM_FACTOR, levels=levels)


def test_an_architecture_that_dyno_does_not_know_is_a_mistake_with_the_others() -> None:
    assert PLATFORM.mistakes(factor("amd64", "s390x"), ENGINES["mariadb"], None) == []
    [found] = PLATFORM.mistakes(factor("amd64", "vax"), ENGINES["mariadb"], None)
    assert found.hint == f"there are: {', '.join(ARCHITECTURES)}"


def test_an_engine_that_cannot_be_had_for_others_is_a_mistake() -> None:
    [found] = PLATFORM.mistakes(factor("amd64", "s390x"), ENGINES["firebird"], None)
    assert found.message == "Firebird cannot be had for other architectures"


def test_packages_that_are_not_here_block_the_variant_with_the_command(homes: Path) -> None:
    own = Installation("mariadb", "10.11.19", "a test", Path("/"), ("/nowhere",), "digest")
    with open_journal() as journal:
        setup = Setup(ENGINES["mariadb"], own, homes, journal, Job(url="", workload="tpcb"))
        with pytest.raises(Blocked, match=r"mariadb@10\.11 of s390x is not on this machine") as blocked:
            OnPlatform("s390x").apply(setup)
    assert blocked.value.factor == PLATFORM_FACTOR
    assert "dyno engines fetch mariadb@10.11 --platform s390x" in blocked.value.hint
    assert setup.installation is own


def test_packages_of_an_architecture_take_the_place_of_the_installation(homes: Path, emulated: None) -> None:
    own = Installation("toy", "3.1", "a test", Path("/"), ("/nowhere",), "digest")
    foreign = replace(own, architecture=FOREIGN, digest="other")
    platforms = SimpleNamespace(locate=lambda version, name: foreign)
    engine = replace(ENGINES["mariadb"], platforms=cast(Platforms, platforms))
    with open_journal() as journal:
        setup = Setup(engine, own, homes, journal, Job(url="", workload="tpcb"))
        OnPlatform(FOREIGN).apply(setup)
    assert setup.installation is foreign and setup.data_maker is foreign
    assert setup.launch.patience == PATIENCE


def test_a_program_of_another_machine_proves_no_level(tmp_path: Path, emulated: None) -> None:
    own = of_this_machine()
    assert own is not None
    here = Installation("toy", "3.1", "a test", tmp_path, (str(Path(sys.executable).resolve()),), "digest")
    found = proved_by_file(own.name, replace(here, architecture=own.name))
    assert found.in_effect and found.effective is not None
    assert found.effective.value == f"{own.name}, {sys.byteorder}-endian"
    assert not proved_by_file(FOREIGN, here).in_effect


def one(way: str, again: bool) -> Reset:
    found = reset(way, 10.0, firmware_again=again).reset
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("level", "again", "in_effect"),
    [
        (FULL, (True, True), True),
        (FULL, (True, False), False),
        (KEXEC, (False, False), True),
        (KEXEC, (False, True), False),
    ],
)
def test_the_firmware_tells_which_reset_it_was(level: str, again: tuple[bool, ...], in_effect: bool) -> None:
    evidence = proved_by_console(level, [one(level, ran) for ran in again])
    assert evidence.in_effect is in_effect
    assert evidence.effective is not None
    assert evidence.effective.value == f"the firmware ran again after {sum(again)} of 2 resets"


def test_an_engine_that_no_guest_holds_is_a_mistake() -> None:
    factor = Factor(name=MACHINE_FACTOR, levels=(FULL, KEXEC))
    assert MACHINE.mistakes(factor, registry.engine("sqlite"), None) == []
    [mistake] = MACHINE.mistakes(factor, registry.engine("mariadb"), None)
    assert mistake.message == "MariaDB runs in no emulated machine here"
