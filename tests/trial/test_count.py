"""Counted trials with real engines: the same work is the same count, whatever else this machine does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.analyse.counted import spread
from dbdyno.driver.job import Job, Open
from dbdyno.host.callgrind import Callgrind
from dbdyno.host.journal import open_journal
from dbdyno.records.record import INSTRUCTIONS, Counted, Outcome
from dbdyno.run import run_trial
from dbdyno.study import Workload
from dbdyno.study.phases import phases_of
from dbdyno.study.trials import Trial, Variant
from dbdyno.trial import count
from dbdyno.trial.count import counted_job
from tests.fakes import Stages
from tests.needs import needs_valgrind
from tests.trials import bench_of, study_of

TOLERANCE = 0.005
SELECTS = Workload(name="point_select", warmup_s=0.0, duration_s=1.0, options={"table_size": 100})


@pytest.fixture(autouse=True)
def few_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "WARMUP_OPERATIONS", 100)
    monkeypatch.setattr(count, "OPERATIONS", 100)


def counted(engine: str, folder: Path) -> Counted:
    study = study_of(engine, {}).model_copy(update={"workload": SELECTS})
    variant = Variant(name="baseline", levels={})
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    folder.mkdir()
    with open_journal() as journal:
        bench = replace(bench_of(study, journal), callgrind=Callgrind(folder))
        record = run_trial(trial, bench, lambda record: None, Stages())
    assert record.outcome is Outcome.MEASURED, record.cause
    assert record.tally is None and record.observation is None and record.ready_s is None
    assert record.counted is not None
    return record.counted


@needs_valgrind
@pytest.mark.parametrize(("engine", "serves"), [("sqlite", "sqlite3VdbeExec"), ("mariadb", "alloc_root")])
def test_the_same_work_is_the_same_count(
    engine: str, serves: str, homes_with_engines: Path, tmp_path: Path
) -> None:
    found = counted(engine, tmp_path / "counted")
    assert found.operations == 100 and len(found.repeats) == count.REPEATS
    least, median, most = sorted(found.repeats)
    # The two that are closest: now and then a server does work of its own.
    assert min(median - least, most - median) <= TOLERANCE * median, found.repeats
    assert found.per_op[INSTRUCTIONS] == median
    assert spread(found) == pytest.approx(most / least - 1.0)
    names = {function.name for function in found.functions}
    assert serves in names
    # An embedded engine shares its process with the driver and with Python, which are not counted.
    assert not any("hdrhistogram" in name or name.startswith("_Py") for name in names)
    listed = sum(function.own[INSTRUCTIONS] for function in found.functions)
    assert 0.9 * median < listed <= median
    assert all(function.whole >= function.own[INSTRUCTIONS] for function in found.functions)


def test_a_counted_job_is_of_one_client_and_draws_anew_each_time() -> None:
    job = Job(workload="tpcb", clients=8, threads=2, seed=7, warmup_s=5.0, load=Open(rate_per_s=10.0))
    made = [counted_job(job, 100, repeat) for repeat in range(-1, count.REPEATS)]
    assert {(one.clients, one.threads, one.operations, one.load.kind) for one in made} == {
        (1, 1, 100, "closed")
    }
    others = [counted_job(job.but(seed=8), 100, repeat) for repeat in range(-1, count.REPEATS)]
    assert len({one.seed for one in made + others}) == 2 * len(made)
    assert made == [counted_job(job, 100, repeat) for repeat in range(-1, count.REPEATS)]
