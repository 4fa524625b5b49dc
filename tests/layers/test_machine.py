"""A way of a reset is proved by the firmware: it runs again after a full one, and after no fast one."""

from __future__ import annotations

import pytest

from dbdyno.engines import registry
from dbdyno.layers.machine import FULL, KEXEC, MACHINE, proved_by_console
from dbdyno.records.reset import Reset
from dbdyno.study import Factor
from dbdyno.study.nouns import MACHINE_FACTOR
from tests.analyse.machine_cases import reset


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
