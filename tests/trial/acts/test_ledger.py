"""The clients' ledger: what is owed is looked for one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import DriverFailed
from dbdyno.trial.acts.ledger import (
    NS,
    Entry,
    Ledger,
    doubled,
    full_speed_s,
    losses,
    make_table,
    speed_per_s,
    windows_of,
)

entries = st.lists(
    st.builds(Entry, st.integers(0, 3), st.integers(1, 50), st.integers(1, 1000)),
    unique_by=lambda entry: (entry.client, entry.number),
)


def pairs(found: Sequence[Entry]) -> list[tuple[int, int]]:
    return [(entry.client, entry.number) for entry in found]


@given(entries)
def test_what_is_there_is_not_lost(told: list[Entry]) -> None:
    found = losses(told, pairs(told), end_ns=2000)
    assert found == (len(told), 0, 0.0)


@given(entries, st.integers(1, 1000))
def test_each_entry_that_is_missing_is_counted_if_it_was_told_before_the_end(
    told: list[Entry], end_ns: int
) -> None:
    owed = [entry for entry in told if entry.told_ns < end_ns]
    found = losses(told, [], end_ns)
    assert (found.acknowledged, found.lost) == (len(owed), len(owed))
    oldest_ns = max((end_ns - entry.told_ns for entry in owed), default=0)
    assert found.first_ms == pytest.approx(oldest_ns / 1e6)


@given(entries, st.data())
def test_a_row_of_which_nobody_was_told_hides_no_loss(told: list[Entry], data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.sampled_from(told))) if told else set()
    rows = [*pairs([entry for entry in told if entry not in gone]), (9, 1), (9, 2)]
    assert losses(told, rows, end_ns=2000).lost == len(gone)


def test_a_transaction_that_took_effect_twice_is_seen() -> None:
    assert doubled([(0, 1), (0, 2), (1, 1)]) == 0
    assert doubled([(0, 1), (0, 1), (1, 1), (1, 1), (1, 1)]) == 3


def told_at(*seconds: float) -> list[Entry]:
    return [Entry(0, number, round(second * NS)) for number, second in enumerate(seconds, 1)]


def test_full_speed_is_that_of_the_load_before() -> None:
    slow = [10.0, *(10.0 + 0.1 * window + 0.05 for window in range(3))]
    fast = [10.305 + 0.01 * step for step in range(169)]
    steady = [10.0, *(10.005 + 0.01 * step for step in range(199))]
    recovering, undisturbed = (windows_of(told_at(*one), end_ns=12 * NS) for one in (slow + fast, steady))
    assert speed_per_s(undisturbed) == speed_per_s(recovering) == pytest.approx(100.0)
    assert full_speed_s(recovering, 100.0) == pytest.approx(0.4)
    assert full_speed_s(undisturbed, 100.0) == pytest.approx(0.1)


def test_a_load_that_stays_slower_than_before_never_has_full_speed() -> None:
    half = windows_of(told_at(10.0, *(10.01 + 0.02 * step for step in range(99))), end_ns=12 * NS)
    assert speed_per_s(half) == pytest.approx(50.0)
    assert full_speed_s(half, 100.0) == pytest.approx(2.0)
    assert full_speed_s(half, 0.0) is None, "the first load has none before it"


@pytest.mark.parametrize("seconds", [(), (10.0,), tuple(10.0 + 0.01 * step for step in range(40))])
def test_a_short_load_tells_no_full_speed(seconds: tuple[float, ...]) -> None:
    counts = windows_of(told_at(*seconds), end_ns=round(10.5 * NS))
    assert (speed_per_s(counts), full_speed_s(counts, 100.0)) == (0.0, None)


def test_a_file_is_read_up_to_an_entry_that_was_cut_off(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.entries() == []
    ledger.path.write_bytes(struct.pack("<QQQ", 1, 2, 3) + struct.pack("<QQ", 4, 5))
    assert ledger.entries() == [Entry(1, 2, 3)]
    assert ledger.begins(Event())


def test_each_ledger_of_a_trial_has_a_number_of_its_own(tmp_path: Path) -> None:
    assert [Ledger(tmp_path).of_job.cut for _ in range(3)] == [1, 2, 3]


def test_a_load_that_is_over_is_not_waited_for(tmp_path: Path) -> None:
    over = Event()
    over.set()
    assert not Ledger(tmp_path).begins(over)


class Database:
    """Answers as a server without the table does, until that is made."""

    def __init__(self, kind: str = "server") -> None:
        self.said: list[str] = []
        self.kind = kind

    def ask(self, sql: str) -> list[list[str | float | None]]:
        self.said.append(sql.split()[0])
        if sql.startswith("SELECT"):
            raise DriverFailed("no such table: dyno_ledger", kind=self.kind)
        return []


def test_a_table_that_is_gone_holds_no_rows_and_is_made_again(tmp_path: Path) -> None:
    database = Database()
    assert Ledger(tmp_path).rows(database.ask) == []
    make_table(database.ask)
    assert database.said == ["SELECT", "SELECT", "CREATE"]


def test_a_server_that_cannot_be_reached_is_no_loss(tmp_path: Path) -> None:
    database = Database(kind="connect")
    with pytest.raises(DriverFailed):
        Ledger(tmp_path).rows(database.ask)
    with pytest.raises(DriverFailed):
        make_table(database.ask)


def test_full_speed_is_nine_tenths_of_the_load_before_for_a_tenth_of_a_second() -> None:
    """1,000 a second before, so 90 in a window of 0.1 s are full speed, and 89 are not."""
    assert full_speed_s([10, 89, 90, 10], 1000.0) == pytest.approx(0.3)
    assert full_speed_s([10, 89, 89, 89], 1000.0) == pytest.approx(0.4), "never: all windows"
    told = [Entry(0, number, number * 1_000_000) for number in range(1000)]
    assert windows_of(told, 1_000_000_000) == [100] * 10
