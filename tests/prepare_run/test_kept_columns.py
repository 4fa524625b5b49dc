"""The columns of long runs: kept once, made again where anything changed, and worth the records."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.analyse.analysis import AnalysisInput
from dbdyno.host import paths
from dbdyno.prepare_run import stored_run
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from tests.analyse.answers_cases import CASES, STORED, answer, differing

OF_RECORDS = sorted(CASES.keys() - {"a_whole_search", "nothing_run"})


@pytest.fixture(autouse=True)
def long_enough(monkeypatch: pytest.MonkeyPatch, homes: Path) -> None:
    """Runs of a test are short."""
    monkeypatch.setattr(stored_run, "RECORDS_LEAST", 1)


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(STORED.read_bytes()))
    return found


def kept() -> list[Path]:
    return sorted((paths.cache_place() / "readings").glob("*/*.Columns.*"))


def fill(store: Store, run: Run, records: list[Record]) -> None:
    store.add_run(run)
    latest = {one.trial: one for one in sorted(records, key=lambda one: (one.whole, one.finished_unix_s))}
    # Each record on its own would wait for the disk.
    with store._transaction() as execute:
        for one in latest.values():
            row = (run.run, one.trial, one.variant, one.block, one.outcome.value, one.model_dump_json())
            execute("INSERT INTO dyno_records VALUES (?, ?, ?, ?, ?, ?)", *row)
    store.finish_run(run.run)


@pytest.mark.parametrize("name", OF_RECORDS)
def test_kept_columns_give_each_digit_that_records_give(name: str, stored: dict[str, Any]) -> None:
    study, run, records = CASES[name]()
    with Store(store_url()) as store:
        fill(store, run, list(records))
        for _ in range(2):
            given = stored_run.given(store, run)
            assert isinstance(given, AnalysisInput)
            found = json.loads(json.dumps(answer((study, run, given))))
            assert differing(found, stored[name]) == set()
            assert len(kept()) == 2


def test_columns_that_are_stale_or_torn_are_made_again() -> None:
    study, run, records = CASES["verdicts"]()
    with Store(store_url()) as store:
        fill(store, run, list(records))
        expected = answer((study, run, stored_run.given(store, run)))
        arrays, head = kept()
        arrays.write_bytes(arrays.read_bytes()[:-400])
        assert answer((study, run, stored_run.given(store, run))) == expected
        [whole, _] = kept()
        assert whole != arrays and not arrays.exists()
        head.write_text(head.read_text()[:-40])
        assert answer((study, run, stored_run.given(store, run))) == expected
        before = kept()
        assert answer((study, run, stored_run.given(store, run))) == expected
        assert kept() == before
        store.add_record(records[-1].but(trial=999, block=99))
        assert len(answer((study, run, stored_run.given(store, run)))["trials"]) == 1 + len(records)


def test_of_a_run_that_goes_on_nothing_is_kept() -> None:
    _, run, records = CASES["verdicts"]()
    with Store(store_url()) as store:
        store.add_run(run)
        store.add_record(records[0])
        assert stored_run.given(store, run) == [records[0]]
    assert kept() == []
