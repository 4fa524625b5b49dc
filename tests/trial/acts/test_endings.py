"""The clients' ledger: what is owed is looked for one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.driver.load_process import LoadProcess
from dbdyno.errors import Blocked, DriverFailed
from dbdyno.frozen import Level
from dbdyno.study.soak import Act
from dbdyno.trial.acts import act_on, endings
from dbdyno.trial.acts.endings import (
    NS,
    Acknowledgement,
    Ledger,
    MarkedRow,
    TextPlace,
    doubled,
    full_speed_s,
    losses,
    make_table,
    speed_per_s,
    windows_of,
)
from tests.trial.acts.rounds_cases import acted, round_with, running

entries = st.lists(
    st.builds(Acknowledgement, st.integers(0, 3), st.integers(1, 50), st.integers(1, 1000)),
    unique_by=lambda entry: (entry.client, entry.number),
)


def pairs(found: Sequence[Acknowledgement]) -> list[tuple[int, int]]:
    return [(entry.client, entry.number) for entry in found]


@given(entries)
def test_what_is_there_is_not_lost(told: list[Acknowledgement]) -> None:
    found = losses(told, pairs(told), end_ns=2000)
    assert found == (len(told), 0, 0.0)


@given(entries, st.integers(1, 1000))
def test_each_entry_that_is_missing_is_counted_if_it_was_told_before_the_end(
    told: list[Acknowledgement], end_ns: int
) -> None:
    owed = [entry for entry in told if entry.told_ns < end_ns]
    found = losses(told, [], end_ns)
    assert (found.acknowledged, found.lost) == (len(owed), len(owed))
    oldest_ns = max((end_ns - entry.told_ns for entry in owed), default=0)
    assert found.first_ms == pytest.approx(oldest_ns / 1e6)


@given(entries, st.data())
def test_a_row_of_which_nobody_was_told_hides_no_loss(
    told: list[Acknowledgement], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from(told))) if told else set()
    rows = [*pairs([entry for entry in told if entry not in gone]), (9, 1), (9, 2)]
    assert losses(told, rows, end_ns=2000).lost == len(gone)


def test_a_transaction_that_took_effect_twice_is_seen() -> None:
    assert doubled([(0, 1), (0, 2), (1, 1)]) == 0
    assert doubled([(0, 1), (0, 1), (1, 1), (1, 1), (1, 1)]) == 3


def told_at(*seconds: float) -> list[Acknowledgement]:
    return [Acknowledgement(0, number, round(second * NS)) for number, second in enumerate(seconds, 1)]


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
    assert ledger.entries() == [Acknowledgement(1, 2, 3)]
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
    told = [Acknowledgement(0, number, number * 1_000_000) for number in range(1000)]
    assert windows_of(told, 1_000_000_000) == [100] * 10


ENGINES: dict[str, tuple[dict[str, Level], bool]] = {
    "sqlite": ({"config.journal_mode": "wal"}, False),
    "mariadb": ({"config.innodb_checksum_algorithm": "full_crc32"}, True),
}
"""Levels of each engine, and whether it tells of a flipped bit."""


@pytest.mark.engine
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_tells_of_a_flipped_bit_if_it_checks_its_pages(
    homes_with_engines: Path, engine: str
) -> None:
    levels, told = ENGINES[engine]
    for found in acted(engine, levels, Act.FLIP, Act.FLIP):
        recovery = found.recovery
        assert recovery.told is told
        assert recovery.acknowledged > 0 and recovery.ready_s is not None
        assert (recovery.lost, recovery.damage, recovery.fault) == (0, "", ""), "the bit was turned back"
        assert all(check.holds for check in found.checks)


@pytest.mark.engine
def test_a_row_that_no_file_holds_as_it_was_written_is_blocked(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "_found", lambda _path, _text: iter(()))
    refusal = pytest.raises(Blocked, match="no file holds the row")
    with running("sqlite", {}, Act.FLIP) as (up, bench, undo), refusal as refused:
        act_on(up, round_with(Act.FLIP), bench, undo)
    assert "compression" in refused.value.hint


@pytest.mark.engine
def test_a_failure_of_dyno_s_own_is_nothing_that_the_engine_told(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = LoadProcess.query

    def failing(load: LoadProcess, url: str, sql: str) -> list[list[str | float | None]]:
        if sql.startswith("SELECT letters"):
            raise DriverFailed("the load process did not answer", kind="internal")
        return query(load, url, sql)

    monkeypatch.setattr(LoadProcess, "query", failing)
    failure = pytest.raises(DriverFailed, match="the load process did not answer")
    with running("sqlite", {}, Act.FLIP) as (up, bench, undo), failure:
        act_on(up, round_with(Act.FLIP), bench, undo)


def test_a_bit_that_is_turned_back_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "page"
    path.write_bytes(b"-abc-")
    place = TextPlace(path, offset=1, right=b"abc", wrong=b"afc")
    assert place.turn()
    assert path.read_bytes() == b"-afc-"
    place.turn_back()
    assert path.read_bytes() == b"-abc-"


def test_what_the_engine_wrote_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"-abc-")
    place = TextPlace(path, offset=1, right=b"abc", wrong=b"afc")
    assert place.turn()
    path.write_bytes(b"-xfz-")
    place.turn_back()
    assert path.read_bytes() == b"-xfz-"
    assert not place.turn()
    path.unlink()
    place.turn_back()
    assert not place.turn() and not path.exists()


def test_a_mark_is_found_wherever_files_hold_it(tmp_path: Path) -> None:
    mark = MarkedRow.drawn(number=1, seed=7)
    text = mark.text.encode()
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "0").write_bytes(b"--" + text)
    (tmp_path / "data").write_bytes(text + b"-" + text)
    (tmp_path / "empty").touch()
    (tmp_path / "other").write_bytes(text[:-1])
    places = list(mark.places(tmp_path))
    found = [(place.file.name, place.offset) for place in places]
    assert found == [("data", 0), ("data", len(text) + 1), ("0", 2)]
    [wrong] = {place.wrong for place in places}
    turned = [number for number, letters in enumerate(zip(text, wrong, strict=True)) if len({*letters}) > 1]
    assert turned == [mark.letter] and wrong[mark.letter] ^ text[mark.letter] == mark.value


def test_each_round_has_a_mark_of_its_own_that_cannot_be_compressed() -> None:
    marks = [MarkedRow.drawn(number, seed=7) for number in range(20)]
    assert len({mark.text for mark in marks}) == len({mark.table for mark in marks}) == 20
    assert all(len(set(mark.text)) == endings.LETTERS for mark in marks)
    assert MarkedRow.drawn(1, seed=7) == marks[1] != MarkedRow.drawn(1, seed=8)


def test_a_turned_letter_is_another_whole_character() -> None:
    for number in range(200):
        mark = MarkedRow.drawn(number, seed=7)
        letter = ord(mark.text[mark.letter])
        assert 32 <= letter ^ mark.value < 128 and mark.value
