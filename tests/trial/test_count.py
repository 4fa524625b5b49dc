"""Counted trials with real engines: the same work is the same count, whatever else this machine does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from dbdyno.analyse.code import spread
from dbdyno.analyse.model import Verdict
from dbdyno.driver.job import Job, Open
from dbdyno.errors import ServerFailed, UserError
from dbdyno.findings import analyse, as_json
from dbdyno.frozen import Level
from dbdyno.host.callgrind import Callgrind, CallgrindDump, read_dump
from dbdyno.host.journal import open_journal
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.records import metrics
from dbdyno.records.record import INSTRUCTIONS, Counted, Outcome
from dbdyno.records.store import Store
from dbdyno.run import run_trial
from dbdyno.study import TRIALS_MAX, Arrangement, Goal, Workload
from dbdyno.study.trials import NO_BLOCK, Trial, Variant, phases_of
from dbdyno.trial import count
from dbdyno.trial.bench import trial_seed
from dbdyno.trial.count import counted_job, require_countable
from tests.fakes import FakeEngine, FakeServer, Stages, carried_out, make_bench, make_run, make_study
from tests.needs import needs_valgrind
from tests.report.forms import as_markdown, as_page
from tests.trials import bench_of, study_of

TOLERANCE = 0.005
SELECTS = Workload(name="point_select", warmup_s=0.0, duration_s=1.0, options={"table_size": 100})


@pytest.fixture(autouse=True)
def few_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "WARMUP_OPERATIONS", 100)
    monkeypatch.setattr(count, "OPERATIONS", 100)


def counted(engine: str, folder: Path) -> Counted:
    study = study_of(engine, {}).but(workload=SELECTS)
    variant = Variant(name="baseline", levels={})
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    folder.mkdir()
    with open_journal() as journal:
        bench = replace(bench_of(study, journal), callgrind=Callgrind(folder))
        record = run_trial(trial, bench, lambda record: None, Stages())
    assert record.outcome is Outcome.MEASURED, record.cause
    assert record.tally is None and record.observation is None and record.ready_s is None
    assert record.instructions is not None
    return record.instructions


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


DUMP = """\
positions: line
events: Ir
ob=/opt/server
fl=server.c
fn=serve
1 {count}
totals: {count}
"""


class FakeCallgrind:
    """Gives these counts, one after the other."""

    wrapper: tuple[str, ...] = ("valgrind",)
    folder = Path("/nowhere")

    def __init__(self, *counts: int) -> None:
        self._counts = iter(counts)

    def counting(self, process_id: int) -> AbstractContextManager[None]:
        return nullcontext()

    def dumps(self) -> list[CallgrindDump]:
        return [read_dump(DUMP.format(count=next(self._counts)).splitlines())]


def test_a_study_of_instructions_has_verdicts_and_no_speed(homes: Path) -> None:
    goal = Goal(response="instructions_per_op")
    study = make_study(1, 2, blocks=6, goal=goal)
    run = make_run(study)
    # The load that stands in for a server's does 1,000 transactions for each unit of its speed.
    counts = [1000 * count for _ in range(12) for count in (50_003, 50_001, 50_002)]
    with Store(f"sqlite:///{homes / 'dyno.sqlite'}") as store, open_journal() as journal:
        store.add_run(run)
        bench = replace(make_bench(study, run, journal), callgrind=cast(Callgrind, FakeCallgrind(*counts)))
        carried_out(bench, store)
        records = store.records(run.run)
    instructions = metrics.find("instructions_per_op")
    assert {one.levels["config.speed"]: instructions.read(one) for one in records} == {
        1: 50_002.0,
        2: 25_001.0,
    }
    timed = [metrics.find(name) for name in ("throughput", "p99_ms", "ready_s")]
    assert {metric.read(record) for record in records for metric in timed} == {None}
    analysis = analyse(study, run, records)
    (candidate,) = analysis.candidates
    assert candidate.verdict is Verdict.FASTER
    for form in (as_page, as_markdown, as_json.render):
        assert "instructions" in form(analysis)


@pytest.mark.parametrize("arrangement", list(Arrangement))
def test_work_is_counted_after_the_timed_blocks_and_by_itself(homes: Path, arrangement: Arrangement) -> None:
    goal = Goal(counted=True)
    study = make_study(1, 2, blocks=6, goal=goal, arrangement=arrangement, slice_s=0.5, images=3)
    run, progress = make_run(study), Stages()
    # The load that stands in for a server's does 1,000 transactions for each unit of its speed.
    counts = [1000 * count for _ in range(2) for count in (50_003, 50_001, 50_002)]
    with Store(f"sqlite:///{homes / 'dyno.sqlite'}") as store, open_journal() as journal:
        store.add_run(run)
        bench = replace(make_bench(study, run, journal), counter=cast(Callgrind, FakeCallgrind(*counts)))
        carried_out(bench, store, progress)
        records = store.records(run.run)
    timed, counted = records[:12], records[12:]
    assert all(record.tally and not record.instructions and record.block in range(6) for record in timed)
    assert all(record.instructions and not record.tally and record.block == NO_BLOCK for record in counted)
    assert {record.reset["image"] for record in counted} == {0}
    stages = [(trial, stage) for trial, stage in progress.seen if trial >= TRIALS_MAX]
    assert stages == progress.seen[-len(stages) :], "nothing is timed once counting has begun"
    begun = [trial for trial, stage in stages if stage == "prepare"]
    assert [trial for trial, _ in stages] == [one for one in begun for _ in range(len(stages) // len(begun))]
    analysis = analyse(study, run, records)
    assert [len(analysis.trials), analysis.trials_planned] == [12, 12]
    assert [one.instructions_per_op for one in analysis.counted] == [50_002.0, 25_001.0]
    [candidate] = analysis.candidates
    assert candidate.verdict is Verdict.FASTER and candidate.effect and candidate.effect.pairs == 6


class TooModern(FakeEngine):
    """A build with instructions that Valgrind does not know."""

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> FakeServer:
        if launch.wrapper:
            raise ServerFailed("Fake 1.0 was killed by SIGILL while it was starting")
        return super().start(installation, data, runtime, settings, launch)


def test_a_build_that_valgrind_cannot_run_is_blocked_and_told_why(homes: Path) -> None:
    study = make_study(1, 2, blocks=1)
    trial = make_plan(study, Order(seed=1)).trials[0]
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal, TooModern())
        counting = replace(bench, callgrind=cast(Callgrind, FakeCallgrind()))
        record = run_trial(trial, counting, lambda record: None, Stages())
    assert record.outcome is Outcome.BLOCKED
    assert "SIGILL" in record.cause and "Valgrind does not know" in record.cause
    assert "AVX-512" in record.remedy


def test_what_one_client_cannot_show_is_refused() -> None:
    with pytest.raises(UserError, match=r"workload\.clients does not show in counted work"):
        require_countable(make_study(1, 8, factor="workload.clients"))
    require_countable(make_study(1, 8, factor="workload.scale"))


@pytest.mark.parametrize("run_seed", [0, -1, 2**63 - 1])
def test_the_driver_takes_every_seed_of_a_counted_trial(run_seed: int) -> None:
    job = Job(workload="point_select", seed=trial_seed(run_seed, NO_BLOCK))
    made = [counted_job(job, 100, repeat) for repeat in range(-1, count.REPEATS)]
    assert len({one.seed for one in made}) == len(made)
    assert all(0 <= one.seed < 2**64 for one in [job, *made])


def test_a_counted_job_is_of_one_client_and_draws_anew_each_time() -> None:
    job = Job(workload="tpcb", clients=8, threads=2, seed=7, warmup_s=5.0, load=Open(rate_per_s=10.0))
    made = [counted_job(job, 100, repeat) for repeat in range(-1, count.REPEATS)]
    assert {(one.clients, one.threads, one.operations, one.load.kind) for one in made} == {
        (1, 1, 100, "closed")
    }
    others = [counted_job(job.but(seed=8), 100, repeat) for repeat in range(-1, count.REPEATS)]
    assert len({one.seed for one in made + others}) == 2 * len(made)
    assert made == [counted_job(job, 100, repeat) for repeat in range(-1, count.REPEATS)]
