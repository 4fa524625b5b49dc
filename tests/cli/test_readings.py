"""What verbs over many runs keep of finished runs: read once, and made again where anything changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.host import cache, paths
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.trend_cases import keep

SLOWER = 0.5


@pytest.fixture
def three(homes: Path) -> Path:
    for days_ago in (3, 2, 1):
        keep(f"day-{days_ago}", days_ago=days_ago, ratio=SLOWER)
    return homes


def told(verb: str, *arguments: str) -> object:
    found = dyno(verb, *arguments, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def damage(run: str) -> None:
    """Leaves nothing to read of a run's records, which are as many as before."""
    with Store(store_url()) as store, store._transaction() as execute:
        execute("UPDATE dyno_records SET document = '{}' WHERE run = ?", run)


def readings() -> list[Path]:
    return sorted((paths.cache_place() / "readings").glob("*/*.*.json"))


@pytest.mark.parametrize(("verb", "arguments"), [("trend", ("day-1",)), ("museum", ())])
def test_records_of_a_finished_run_are_read_once(three: Path, verb: str, arguments: tuple[str, ...]) -> None:
    first = told(verb, *arguments)
    assert len(readings()) == 3
    damage("day-2")
    assert told(verb, *arguments) == first
    listed = json.loads(dyno("cache", "list", "--json").stdout)["things"]
    assert [one["kind"] for one in listed] == ["readings"]
    cache.release()
    assert dyno("cache", "free", "--kind", "readings").returncode == 0
    assert told(verb, *arguments) != first


def test_a_run_that_went_on_is_read_again(three: Path) -> None:
    told("museum")
    with Store(store_url()) as store:
        last = store.records("day-2")[-1]
        store.add_record(last.model_copy(update={"trial": last.trial + 1, "block": last.block + 1}))
    damage("day-2")
    assert told("museum")["unread"] == ["day-2"]  # type: ignore[index]


def test_a_torn_reading_and_one_of_another_code_are_made_again(three: Path) -> None:
    first = told("museum")
    torn, older, whole = readings()
    torn.write_text(torn.read_text()[:-40])
    older.write_text(older.read_text().replace("slower", "failed").replace(older.read_text()[:64], "0" * 64))
    before = whole.stat().st_mtime_ns
    assert told("museum") == first
    assert whole.stat().st_mtime_ns == before


def test_of_a_run_that_is_not_finished_nothing_is_kept(homes: Path) -> None:
    keep("under-way", ratio=SLOWER, finished=False)
    told("museum")
    assert readings() == []


def test_a_cache_that_cannot_be_written_keeps_nothing(three: Path) -> None:
    place = paths.cache_place() / "readings"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    assert len(told("museum")["pieces"]) == 1  # type: ignore[index]
    assert place.is_file()


def test_a_reading_goes_with_its_run(three: Path) -> None:
    told("museum")
    assert dyno("runs", "rm", "day-2", "--yes").returncode == 0
    assert len(readings()) == 2
    assert "no run 'day-2'" in complaint("report", "day-2")
