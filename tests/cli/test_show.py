"""`dyno report --trials`: a run and its trials as they were recorded."""

from __future__ import annotations

import json

import pytest

from dbdyno.records.place import store_url
from dbdyno.records.record import INSTRUCTIONS, Counted, Evidence, Filled, Outcome, PhaseRecord, Reading
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import TRIALS_MAX
from dbdyno.study.trials import NO_BLOCK
from tests.cli.calls import complaint, dyno
from tests.cli.reports_cases import run

__all__ = ["run"]
REFUSED = Evidence(
    factor="config.page_size",
    requested="16384",
    effective=Reading(value="8192", source="RDB$CONFIG"),
    in_effect=False,
    reason="the server kept 8192",
    remedy="ask for a power of two",
)


@pytest.fixture
def failed(run: Run) -> Run:
    """The run, whose second trial ended with a log and a level that was refused."""
    with Store(store_url()) as store:
        record = store.records(run.run)[1]
        log = "\n".join(
            ["an early line", *(f"line {number}" for number in range(40)), "out of \x1b[31mmemory"]
        )
        changes = {"outcome": Outcome.FAILED, "cause": "the server died", "server_log": log}
        store.add_record(record.model_copy(update={**changes, "evidence": (REFUSED,)}))
    return run


def test_a_run_shows_its_study_and_its_trials(failed: Run) -> None:
    said = dyno("report", "--trials")
    assert said.returncode == 0, said.stderr
    assert failed.run in said.stdout and 'engine = "firebird@5"' in said.stdout
    assert "measured" in said.stdout and "failed" in said.stdout


def test_a_trial_shows_its_settings_its_cause_and_the_end_of_its_log(failed: Run) -> None:
    said = " ".join(dyno("report", failed.run, "1").stdout.split())
    for told in ("the server died", "8192", "RDB$CONFIG", "no: the server kept 8192", "line 39"):
        assert told in said
    assert "an early line" not in said and "\x1b[31m" not in said
    shown = json.loads(dyno("report", failed.run, "1", "--json").stdout)
    assert shown["evidence"][0]["reason"] == "the server kept 8192" and "an early line" in shown["server_log"]


def test_a_run_as_json_has_every_trial(failed: Run) -> None:
    shown = json.loads(dyno("report", "--json", "--trials").stdout)
    assert [trial["outcome"] for trial in shown["trials"]] == ["measured", "failed", "measured", "measured"]


def test_passes_that_filled_the_caches_are_shown(run: Run) -> None:
    filled = Filled(counter="misses", queries=1000, per_query=(40.0, 2.5, 2.5), stands=True)
    with Store(store_url()) as store:
        store.add_record(store.records(run.run)[0].model_copy(update={"filled": filled}))
    told = "1,000 queries, pass after pass; misses per query: 40.00, 2.500, 2.500"
    assert told in " ".join(dyno("report", run.run, "0").stdout.split())
    assert "pass after pass" not in dyno("report", run.run, "1").stdout


def test_counted_trials_stand_below_the_timed_ones(run: Run) -> None:
    counted = Counted(operations=1, per_op={INSTRUCTIONS: 43_965.0}, repeats=(43_965.0,))
    with Store(store_url()) as store:
        first = store.records(run.run)[0]
        phases = (PhaseRecord(name="counted", counted=counted),)
        placed = {"trial": TRIALS_MAX, "block": NO_BLOCK, "phases": phases}
        store.add_record(first.model_copy(update=placed))
    [row] = [
        line.split()
        for line in dyno("report", "--trials").stdout.splitlines()
        if str(TRIALS_MAX) in line.split()
    ]
    assert row == [str(TRIALS_MAX), "–", first.variant, "counted", "43,965", "instructions"]
    assert "none: its work is counted" in dyno("report", run.run, str(TRIALS_MAX)).stdout


def test_a_trial_that_there_is_not_is_refused(failed: Run) -> None:
    assert "has no trial 9" in complaint("report", failed.run, "9")
