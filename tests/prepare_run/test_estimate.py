"""The header of a run, and what its estimate of the end rests on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.plan.budget import Replan
from dbdyno.prepare_run.adapted import replan_text
from dbdyno.prepare_run.estimate import header_of_run, restarts_text, run_estimate
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.place import store_url
from dbdyno.records.record import PhaseRecord
from dbdyno.records.store import Store
from dbdyno.study import Arrangement, Restarts, Study, Workload
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import phases_of
from tests.analyse.factory import a_run, records_of
from tests.cli.calls import dyno
from tests.fakes import a_slice, make_study
from tests.study_texts import STUDY


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_run_begins_with_what_it_is_and_when_it_ends(study: Path) -> None:
    said = dyno("run", str(study), "--blocks", "1")
    first, second = said.stderr.splitlines()[:2]
    assert first == "Which synchronous?"
    assert "2 variants, 1 block, 2 trials; about" in second and "(an estimate by a rule of thumb)" in second
    again = dyno("run", str(study), "--blocks", "1")
    assert "(an estimate by 2 earlier trials)" in again.stderr
    assert "estimate" not in dyno("run", str(study), "--blocks", "1", "--quiet").stderr


def test_the_estimate_is_what_trials_of_the_engine_took(study: Path) -> None:
    read = study_at(study, seed=1)
    run = a_run(read).but(installation={"engine": "sqlite"})
    with Store(store_url()) as store:
        assert run_estimate(store, read).seen.words == "by a rule of thumb"
        store.add_run(run)
        for record in records_of(read):
            took_s = record.load_s + 7.0
            store.add_record(record.model_copy(update={"finished_unix_s": record.started_unix_s + took_s}))
        found = run_estimate(store, read)
        assert len(found.seen.took_s) == 4
        assert found.trials_s == pytest.approx(4 * (7.0 + 0.5), abs=0.01)
        assert "1 of them kept; about 22 s" in header_of_run(read, run, found, 1, 0.0)
        both = run_estimate(store, read, again=2, builds_s=100.0)
        assert both.trials_s == pytest.approx(6 * (7.0 + 0.5), abs=0.01)
        assert both.whole_s == pytest.approx(145.0, abs=0.01)
        assert "4 trials and 2 of the reference; about 2 min" in header_of_run(read, run, both, 0, 0.0)


def test_the_estimate_rests_on_the_latest_run_on_the_same_data(homes: Path) -> None:
    def of_scale(scale: int) -> Study:
        path = homes / f"{scale}.toml"
        path.write_text(STUDY.replace("[workload]", f"[workload]\nscale = {scale}"))
        return study_at(path, seed=1)

    read, other = of_scale(1), of_scale(20)
    with Store(store_url()) as store:
        for number, (kept, beside_s) in enumerate(((read, 7.0), (other, 90.0))):
            run = a_run(kept).but(
                run=f"run-{number}", installation={"engine": "sqlite"}, study_text=kept.text,
                created_unix_s=1e9 + number,
            )  # fmt: skip
            store.add_run(run)
            for record in records_of(kept):
                ended_unix_s = record.started_unix_s + record.load_s + beside_s
                changes = {"run": run.run, "finished_unix_s": ended_unix_s}
                store.add_record(record.model_copy(update=changes))
        found = run_estimate(store, read)
        assert found.trials_s == pytest.approx(4 * (7.0 + 0.5), abs=0.01)
        assert found.seen.words == "by 4 earlier trials"
        found = run_estimate(store, of_scale(5))
        assert found.trials_s == pytest.approx(4 * (90.0 + 0.5), abs=0.01)
        assert found.seen.words == "by 4 earlier trials on other data"


def test_the_estimate_looks_past_runs_whose_work_was_counted(study: Path) -> None:
    read = study_at(study, seed=1)
    run = a_run(read).but(installation={"engine": "sqlite"})
    later = {"run": "counted", "created_unix_s": run.created_unix_s + 1.0}
    with Store(store_url()) as store:
        store.add_run(run)
        store.add_run(run.model_copy(update=later))
        for record in records_of(read):
            store.add_record(record)
            phases = (PhaseRecord(name="load"),)
            store.add_record(record.model_copy(update={"run": "counted", "phases": phases}))
        found = run_estimate(store, read)
        assert len(found.seen.took_s) == 4
        assert found.trials_s < 4 * 10.0, "a record without a load took 30 s beside it"


def test_the_estimate_counts_the_settling_of_slices_once(study: Path) -> None:
    beside = {"arrangement": Arrangement.SIDE_BY_SIDE, "slice_s": 0.25}
    read = study_at(study, seed=1).model_copy(update=beside)
    [phase] = phases_of(read)
    assert phase.slices == 2
    with Store(store_url()) as store:
        store.add_run(a_run(read).but(installation={"engine": "sqlite"}))
        for record in records_of(read):
            assert record.tally is not None
            slices = [a_slice(started_unix_s=one, duration_s=0.25, operations=1) for one in (1.0, 2.0)]
            tally = record.tally.model_copy(update={"slices": tuple(slices), "duration_s": 0.5})
            load = record.phases[0].model_copy(update={"tally": tally})
            stages_s = {"prepare": 3.0, "drive": tally.warmup_s + 0.5 + 2 * phase.settle_s, "check": 1.0}
            store.add_record(record.model_copy(update={"phases": (load,), "stages_s": stages_s}))
        assert run_estimate(store, read).trials_s == pytest.approx(4 * (4.0 + phase.takes_s))


SQLITE = Reference("sqlite")


def test_a_plan_names_the_acts_the_load_and_the_control() -> None:
    restarts = Restarts(power_cuts=3, torn_pages=1, kills=2, control={"config.synchronous": "off"})
    study = make_study(1, 2, engine=SQLITE, restarts=restarts, workload=Workload(name="read_only"))
    said = restarts_text(study)
    assert said.startswith(
        "before the blocks, under tpcb: 3 power cuts, 1 torn-page cut, 2 kills of each variant, "
        "and of a control that must lose; on volumes of Dyno's own, which needs root; 3 trials, about "
    )


def test_kills_need_neither_control_nor_root() -> None:
    study = make_study(1, 2, engine=SQLITE, restarts=Restarts(kills=1, control={"config.synchronous": "off"}))
    assert restarts_text(study).startswith("before the blocks, under tpcb: 1 kill of each variant; 2 trials")


def test_a_plan_without_restarts_says_nothing() -> None:
    assert restarts_text(make_study(1, 2, engine=SQLITE)) == ""


def test_what_the_rest_of_a_budget_gives_is_told() -> None:
    study = make_study(*range(4))
    told = replan_text(study, Replan(blocks=9, left_out=frozenset({"a"}), overhead_s=1.04, enough_s=300.0))
    assert told.startswith(
        "the first block took 1.0 s per trial beside the load, 1 blocked variant left out: the budget gives "
        "9 blocks; half of an interval's width: ±"
    )
    told = replan_text(study, Replan(blocks=1, left_out=frozenset(), overhead_s=40.0, enough_s=744.2))
    assert told == (
        "the first block took 40.0 s per trial beside the load: no second block fits, and one gives no "
        "interval; 6 blocks need 744 s"
    )


STATEMENTS = """
title  = "Which cache?"
engine = "sqlite"
blocks = 1
[workload]
name   = "statements"
folder = "queries"
rounds = 2
[factors]
"config.cache_size" = [-2000, -4000]
"""


def test_statements_are_estimated_by_a_run_of_them_and_by_nothing_else(homes: Path) -> None:
    (homes / "queries").mkdir()
    (homes / "queries" / "one.sql").write_text("SELECT 1 AS one")
    path = homes / "study.toml"
    path.write_text(STATEMENTS)
    unknown = "2 trials; the first trial shows how long the rounds of these statements take"
    planned = " ".join(dyno("plan", str(path)).stdout.split())
    assert unknown in planned and "about" not in planned.partition("2 trials")[2]
    assert json.loads(dyno("plan", str(path), "--json").stdout)["expected_s"] is None
    said = dyno("run", str(path))
    assert unknown in said.stderr and "[2/2]" in said.stderr, said.stderr
    assert json.loads(dyno("plan", str(path), "--json").stdout)["expected_s"] < 600.0
    assert "(an estimate by 2 earlier trials)" in dyno("run", str(path)).stderr
    path.write_text(STATEMENTS.replace("rounds = 2", "rounds = 3"))
    assert unknown in " ".join(dyno("plan", str(path)).stdout.split()), "those were other rounds"
