"""Bits that are wrong on the disk: an engine that checks its pages says so, others hand them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.driver.load_process import LoadProcess
from dbdyno.errors import Blocked, DriverFailed
from dbdyno.frozen import Level
from dbdyno.study.act import Act
from dbdyno.trial.acts import act_on, flips
from dbdyno.trial.acts.flips import Mark, Place
from tests.trial.acts.rounds_cases import acted, round_with, running

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
    monkeypatch.setattr(flips, "_found", lambda _path, _text: iter(()))
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
    place = Place(path, offset=1, right=b"abc", wrong=b"afc")
    assert place.turn()
    assert path.read_bytes() == b"-afc-"
    place.turn_back()
    assert path.read_bytes() == b"-abc-"


def test_what_the_engine_wrote_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"-abc-")
    place = Place(path, offset=1, right=b"abc", wrong=b"afc")
    assert place.turn()
    path.write_bytes(b"-xfz-")
    place.turn_back()
    assert path.read_bytes() == b"-xfz-"
    assert not place.turn()
    path.unlink()
    place.turn_back()
    assert not place.turn() and not path.exists()


def test_a_mark_is_found_wherever_files_hold_it(tmp_path: Path) -> None:
    mark = Mark.drawn(number=1, seed=7)
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
    marks = [Mark.drawn(number, seed=7) for number in range(20)]
    assert len({mark.text for mark in marks}) == len({mark.table for mark in marks}) == 20
    assert all(len(set(mark.text)) == flips.LETTERS for mark in marks)
    assert Mark.drawn(1, seed=7) == marks[1] != Mark.drawn(1, seed=8)


def test_a_turned_letter_is_another_whole_character() -> None:
    for number in range(200):
        mark = Mark.drawn(number, seed=7)
        letter = ord(mark.text[mark.letter])
        assert 32 <= letter ^ mark.value < 128 and mark.value
