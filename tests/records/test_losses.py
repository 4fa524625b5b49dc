"""A store that is locked, restarted, full or without power: no trial that was told has ended is lost.

`make losses SEED=7` locks the store for a minute, restarts its server five times, fills its disk six times,
and cuts its power 200 times, at moments that the seed draws.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.host.volumes import loop
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from tests.fakes import FakeEngine, Stages, make_study
from tests.needs import INITDB, IS_ROOT, on_machine
from tests.spine import beside, carry_out, in_turn

SEED = os.environ.get("DYNO_LOSSES_SEED", "")
ALL = bool(SEED)
pytestmark = pytest.mark.timeout(0 if ALL else 300)


def lost(what: str, few: int, many: int) -> dict[str, object]:
    """What is counted by `tests/records/losses.py`, which fails where something is lost."""
    command = [sys.executable, "-m", "tests.records.losses", what, str(many if ALL else few), SEED or "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    print(ended.stdout.strip())
    counted: dict[str, object] = json.loads(ended.stdout)
    assert (counted["lost"], counted["done again"]) == ([], 0) and counted["told"] != 0
    return counted


def test_a_store_that_is_locked_loses_no_trial() -> None:
    assert lost("locked", 3, 60)["status"] == 0


@pytest.mark.skipif(INITDB is None, reason="no PostgreSQL under /usr/lib/postgresql")
def test_a_server_that_starts_again_loses_no_trial() -> None:
    assert lost("restarted", 1, 5)["status"] == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root mounts a small disk")
def test_a_disk_that_is_full_loses_no_trial() -> None:
    lost("full", 2, 6)


@pytest.mark.skipif(not IS_ROOT or not loop.CONTROL.exists(), reason="only root cuts a volume's power")
@pytest.mark.skipif(on_machine("mkfs.ext4") is None, reason="no mkfs.ext4")
def test_a_power_cut_loses_no_trial_and_leaves_nothing_torn_under_a_name() -> None:
    counted = lost("cut", 4, 200)
    assert counted["bad"] == [] and counted["things"] != 0


@pytest.fixture
def told(homes: Path, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """The trials whose end is told, each of which the store has by then."""
    told: list[Record] = []

    def look(_: Stages, record: Record) -> None:
        told.append(record)
        with Store(store_url()) as store:
            assert record in store.records(record.run)

    monkeypatch.setattr(Stages, "trial_ended", look)
    return told


def test_nobody_is_told_of_a_trial_before_the_store_has_its_last_record(told: list[Record]) -> None:
    assert told == carry_out(make_study(1, 2, blocks=2)) and len(told) == 4


def test_nor_of_one_beside_a_reference(told: list[Record]) -> None:
    in_turn(beside(1, 2, blocks=1), Stages(), FakeEngine())
    assert sorted(one.run for one in told) == ["again", "first", "first"]
