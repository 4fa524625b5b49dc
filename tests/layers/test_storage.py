"""What the storage layer tells without touching anything: levels, and mount options in their spellings."""

from __future__ import annotations

import pytest

from dbdyno.frozen import Level
from dbdyno.layers.storage import STORAGE, in_force
from dbdyno.study import Factor
from tests.fakes import INSTALLATION, FakeEngine


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("noatime", "rw,noatime"),
        ("async", "rw,relatime"),
        ("atime", "rw,relatime"),
        ("strictatime", "rw"),
        ("barrier=0", "rw,nobarrier"),
        ("barrier=1", "rw"),
        ("compress=zstd", "rw,compress=zstd:3"),
        ("size=1G", "rw,size=1048576k"),
        ("data=writeback", "rw,data=writeback"),
    ],
)
def test_an_option_in_force_in_another_spelling(option: str, shown: str) -> None:
    assert in_force(option, shown.split(","))


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("noatime", "rw,relatime"),
        ("async", "rw,sync"),
        ("strictatime", "rw,relatime"),
        ("barrier=0", "rw"),
        ("compress=zstd", "rw,compress=lzo"),
        ("compress=zstd", "rw"),
        ("size=1G", "rw,size=1024k"),
        ("orlov", "rw,relatime"),
        ("commit=30", "rw,commit=5"),
    ],
)
def test_an_option_that_is_not_in_force(option: str, shown: str) -> None:
    assert not in_force(option, shown.split(","))


@pytest.mark.parametrize(
    ("knob", "level", "said"),
    [
        ("filesystem", "zfs", "'zfs' is no level of it"),
        ("filesystem", "raw", "cannot keep its data on a raw device"),
        ("mkfs", "-O 'open", "a quote is not closed"),
        ("mkfs", "/tmp/victim.img", "no maker of file systems may be given '/tmp/victim.img'"),
        ("mkfs", "-d /etc/ssl", "no maker of file systems may be given"),
        ("mount", "noatime; rm -rf /", "no level of it"),
        ("mount", "noatime,logdev=sdb", "logdev=sdb names a device"),
        ("read_ahead", "many", "no level of it"),
        ("size", "2", "no level of it"),
        ("device", "sdb", "no level of it"),
        ("schedular", "none", "has no knob 'schedular'"),
    ],
)
def test_mistakes_are_found_without_touching_anything(knob: str, level: Level, said: str) -> None:
    factor = Factor(name=f"storage.{knob}", levels=(level,))
    [mistake] = STORAGE.mistakes(factor, FakeEngine().engine, INSTALLATION)
    assert said in mistake.message
    assert mistake.hint
