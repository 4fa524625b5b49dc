"""Caches are filled by passes over all queries, until the server's own counter says that they stand."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dbdyno.driver.job import Closed, Job, Open
from dbdyno.driver.load import Explained, ExplainedStatement, LoadDriver
from dbdyno.driver.tally import Tally
from dbdyno.engines import registry
from dbdyno.engines.engine import Ask, Server
from dbdyno.engines.facts import PlanStep
from dbdyno.engines.registry import locate
from dbdyno.errors import DriverFailed, DynoError, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.journal import Journal, open_journal
from dbdyno.layers.setup import Running, Setup
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.records.amplification import CHANGED, FILES, ROWS, SPACE, WRITE, WRITTEN
from dbdyno.records.metrics import find
from dbdyno.records.record import Doubt, Filled, Outcome
from dbdyno.run import run_trial
from dbdyno.study import Goal, Study, Workload
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import NO_BLOCK, Phase, Trial, Variant
from dbdyno.trial import around_load
from dbdyno.trial.around_load import (
    LINE_MOST,
    LONGEST_S,
    PASSES_MOST,
    READINGS_MOST,
    STEPS_MOST,
    RowsAround,
    has_passes,
    has_plans,
    planned,
    plans_of,
    rows_unknown,
    stands,
)
from dbdyno.trial.bench import Bench
from dbdyno.trial.record_builder import Draft
from tests.fakes import (
    INSTALLATION,
    FakeEngine,
    FakeLoad,
    FakeServer,
    Stages,
    make_bench,
    make_run,
    make_study,
    make_tally,
)
from tests.needs import require_counted_disk
from tests.trials import bench_of, study_of, tried

QUERIES = 50
OPTIONS: dict[str, Level] = {
    "dataset": "", "k": 10, "ef": 60, "m": 8, "ef_construction": 0, "distance": "euclidean",
    "write_share": 0.0, "score_share": 1.0, "vectors": 3_000, "dimensions": 32, "queries": QUERIES,
    "clusters": 1, "intrinsic_dimension": 8, "noise": 0.1, "data_seed": 1,
}  # fmt: skip


@pytest.fixture
def some_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of queries that lies nowhere, asked of a server that need not be waited for."""
    monkeypatch.setattr(around_load, "BETWEEN_READINGS_S", 0.0)
    monkeypatch.setattr(
        "dbdyno.datasets.vectors.open_vector_set", lambda folder: SimpleNamespace(queries=QUERIES)
    )


class Caches:
    """A server whose caches miss so much for each query, pass by pass; the last figure goes on. `answers` of
    all queries succeed."""

    def __init__(self, *per_query: float, answers: int = QUERIES, interrupted: bool = False) -> None:
        self._per_query = itertools.chain(per_query, itertools.repeat(per_query[-1]))
        self._answers = answers
        self._interrupted = interrupted
        self._missed = 1000.0
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Tally:
        self.jobs.append(job)
        self._missed += QUERIES * next(self._per_query)
        failed = QUERIES - self._answers
        errors = {"no such table": failed} if failed else {}
        return make_tally(operations=self._answers, errors=errors, interrupted=self._interrupted)

    def running(self, counter: str = "misses", **options: object) -> Running:
        counters = SimpleNamespace(CACHE_MISSES=counter, status=self._status)
        job = Job(
            workload="vector_search",
            options={"dataset": "/set", "write_share": 0.5, **options},
            clients=4,
            load=Open(rate_per_s=9.0),
            slices=4,
            settle_s=0.1,
        )
        setup = SimpleNamespace(engine=SimpleNamespace(counters=counters), job=job, nodes=None)
        return Running(cast(Setup, setup), cast(Server, SimpleNamespace()), cast(LoadDriver, self))

    def _status(self, ask: Ask) -> dict[str, float]:
        return {"misses": self._missed}


def filled(running: Running, clock: Callable[[], float] = time.monotonic) -> Filled:
    found = around_load.fill(running, clock)
    assert found is not None
    return found


def ticking(step_s: float) -> Callable[[], float]:
    ticks: Iterator[int] = itertools.count()
    return lambda: next(ticks) * step_s


@pytest.mark.usefixtures("some_queries")
def test_passes_end_when_one_misses_no_less_than_the_one_before() -> None:
    server = Caches(40.0, 3.0, 2.75)
    assert around_load.fill(server.running()) == Filled(
        counter="misses", queries=QUERIES, per_query=(40.0, 3.0, 2.75), stands=True
    )


@pytest.mark.usefixtures("some_queries")
def test_a_cache_that_is_too_small_stands_as_well() -> None:
    found = filled(Caches(40.0, 40.0).running())
    assert (found.per_query, found.stands) == ((40.0, 40.0), True)


@pytest.mark.usefixtures("some_queries")
def test_passes_are_bounded_and_what_still_falls_is_told() -> None:
    falling = [2.0**power for power in range(20, 5, -1)]
    found = filled(Caches(*falling).running())
    assert (len(found.per_query), found.stands) == (PASSES_MOST, False)
    late = filled(Caches(*falling).running(), ticking(LONGEST_S / 2))
    assert (len(late.per_query), late.stands) == (1, False)


@pytest.mark.usefixtures("some_queries")
def test_a_pass_that_was_cut_off_is_not_compared() -> None:
    found = filled(Caches(40.0, interrupted=True).running())
    assert (found.per_query, found.stands) == ((), False)
    late = filled(Caches(40.0).running(), ticking(0.6 * LONGEST_S))
    assert (late.per_query, late.stands) == ((), False)


class Late(Caches):
    """Publishes what it counted in a pass by so much with each reading."""

    published, by = 1000.0, 25.0 * QUERIES

    def _status(self, ask: Ask) -> dict[str, float]:
        self.published = min(self._missed, self.published + self.by)
        return {"misses": self.published}


@pytest.mark.usefixtures("some_queries")
def test_a_counter_is_taken_when_it_stands_still() -> None:
    assert filled(Late(60.0, 60.0).running()).per_query == (60.0, 60.0)


@pytest.mark.usefixtures("some_queries")
def test_a_counter_that_never_stands_still_is_not_waited_for_without_end() -> None:
    moving = Late(1.0)
    moving._missed, before = 1e12, moving.published
    around_load.published(moving.running(), "misses")
    assert moving.published - before == READINGS_MOST * moving.by


@pytest.mark.usefixtures("some_queries")
def test_queries_that_fail_are_told_as_errors_and_cut_no_pass_off() -> None:
    found = filled(Caches(40.0, 3.0, 3.0, answers=QUERIES - 1).running())
    assert (found.per_query, found.stands) == ((40.0, 3.0, 3.0), True)
    assert found.errors == {"no such table": 3}
    with pytest.raises(DynoError, match=r"no query succeeded while .*: no such table \(50\)"):
        around_load.fill(Caches(40.0, answers=0).running())


@pytest.mark.usefixtures("some_queries")
def test_a_pass_asks_each_query_once_and_writes_nothing() -> None:
    server = Caches(1.0)
    around_load.fill(server.running())
    for job in server.jobs:
        assert (job.operations, job.clients, job.load, job.slices, job.warmup_s) == (
            QUERIES, 4, Closed(), None, 0.0
        )  # fmt: skip
        assert job.options["write_share"] == 0.0 and 0.0 < job.duration_s <= LONGEST_S


@pytest.mark.parametrize(
    ("before", "last", "over"),
    [(100.0, 95.0, True), (100.0, 94.0, False), (1.0, 0.5, True), (1.0, 0.4, False), (3.0, 9.0, True)],
)
def test_what_is_no_less_is_within_chance(before: float, last: float, over: bool) -> None:
    assert stands([before, last]) is over
    assert not stands([before]) and not stands([])


def test_only_a_server_that_counts_what_it_misses_is_asked() -> None:
    assert has_passes(Caches(1.0).running().setup)
    assert not has_passes(Caches(1.0).running(counter="").setup)
    assert not has_passes(Caches(1.0).running(dataset="").setup)
    assert around_load.fill(Caches(1.0).running(counter="of a later version")) is None


class Dies(FakeEngine):
    """Its server dies when it is asked for its counters."""

    def status(self, ask: Ask) -> dict[str, float]:
        self.servers[-1].kill()
        raise ServerFailed("the server died")


@pytest.mark.parametrize(("engine", "outcome"), [(FakeEngine(), Outcome.MEASURED), (Dies(), Outcome.BROKEN)])
def test_the_stage_has_begun_when_the_server_is_asked(
    homes: Path, engine: FakeEngine, outcome: Outcome
) -> None:
    study = make_study(1, 2, blocks=1)
    workload = study.workload.but(options={"dataset": "/set"})
    study = study.but(workload=workload)
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal, engine)
        trial = make_plan(study, Order(seed=1)).trials[0]
        record = run_trial(trial, bench, lambda record: None, Stages())
    assert (record.outcome, record.filled) == (outcome, None)
    assert "fill" in record.stages_s


def test_a_load_without_queries_has_no_such_stage(homes: Path) -> None:
    study = make_study(1, 2, blocks=1)
    with open_journal() as journal:
        trial = make_plan(study, Order(seed=1)).trials[0]
        record = run_trial(trial, make_bench(study, make_run(study), journal), lambda record: None, Stages())
    assert "fill" not in record.stages_s


@pytest.mark.parametrize(("standing", "doubted"), [(True, False), (False, True)])
def test_caches_that_still_fill_make_the_trial_doubtful(homes: Path, standing: bool, doubted: bool) -> None:
    study = make_study(1, 2)
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal)
        draft = Draft(make_plan(study, Order(seed=1)).trials[0], bench, lambda trial, stage: None)
    errors = {"no such table": 2} if doubted else {}
    passes = Filled(counter="misses", queries=QUERIES, per_query=(9.0, 3.0), stands=standing, errors=errors)
    draft.filled(passes)
    record = draft.record()
    assert record.filled == passes
    assert (Doubt.CACHES_FILLING in record.doubts) is doubted
    if doubted:
        assert (
            record.doubts[Doubt.CACHES_FILLING] == "misses per query, pass by pass over 50 queries: 9.0, 3.0"
        )
        told = "while the caches were filled: no such table (2)"
        assert record.doubts[Doubt.ERRORS_IN_LOAD] == told


@pytest.mark.engine
@pytest.mark.parametrize("reference", [Reference("mariadb", "11.8"), Reference("postgresql", "17")])
def test_the_graph_of_a_vector_index_is_there_before_anything_is_timed(
    reference: Reference, homes_with_engines: Path
) -> None:
    searches = Workload(
        name="vector_search", clients=2, warmup_s=0.0, duration_s=0.5, options=OPTIONS,
        run_options=frozenset({"k", "ef", "write_share", "score_share"}),
    )  # fmt: skip
    study = study_of(reference.engine, {}).but(engine=reference, workload=searches)
    progress = Stages()
    with open_journal() as journal:
        trial = make_plan(study, Order(seed=1)).trials[0]
        record = run_trial(trial, searching(study, journal), lambda record: None, progress)
    assert record.outcome is Outcome.MEASURED, record.cause
    stages = [stage for _, stage in progress.seen]
    assert stages.index("verify") < stages.index("fill") < stages.index("drive")
    assert record.filled is not None and record.filled.stands
    assert record.filled.per_query[0] > 2.0 * record.filled.per_query[-1], "the first pass reads the graph"
    assert Doubt.CACHES_FILLING not in record.doubts


def searching(study: Study, journal: Journal) -> Bench:
    """A bench with an engine that searches vectors. Skips where it is not here."""
    try:
        return bench_of(study, journal)
    except DynoError as missing:
        pytest.skip(f"{study.engine.engine} cannot be had here: {missing.message}")


PHASE = Phase(name="load", duration_s=1.0)


EXECUTED = "executed: "


def read(text: str) -> tuple[PlanStep, ...]:
    """A plan of one step for each word. One that was executed says so first."""
    if text == "unreadable":
        raise ValueError("the plan has another form")
    rows = (5.0, 100.0) if text.startswith(EXECUTED) else None
    return tuple(PlanStep(word, rows=rows) for word in text.removeprefix(EXECUTED).split())


@dataclass
class Told(FakeLoad):
    """A load that was told these plans, or failed."""

    explained: Explained | DriverFailed | None = None
    asked: Sequence[Job] = ()
    executed: Explained | None = None

    def explain(self, job: Job) -> Explained:
        self.asked = (*self.asked, job)
        if job.actual_rows and self.executed is not None:
            return self.executed
        assert self.explained is not None
        if isinstance(self.explained, DriverFailed):
            raise self.explained
        return self.explained


def running(tmp_path: Path, explained: Explained | DriverFailed | None = None) -> Running:
    engine = FakeEngine()
    server = FakeServer(None)  # type: ignore[arg-type]  # no process is looked at
    setup = Setup(
        engine=replace(engine.engine, plans=read),
        installation=INSTALLATION,
        scratch=tmp_path,
        journal=cast(Journal, None),
        job=Job(workload="tpcb", seed=7),
    )
    return Running(setup=setup, server=server, load=Told(engine, explained=explained))


def a_trial(block: int = 0) -> Trial:
    return Trial(
        index=0, block=block, position=0, variant=Variant(name="baseline", levels={}), phases=(PHASE,)
    )


def told(transaction: str, text: str, plan: str | None, why_not: str = "") -> ExplainedStatement:
    return ExplainedStatement(transaction=transaction, text=text, plan=plan, why_not=why_not)


def test_statements_are_named_by_their_transaction_and_what_has_no_plan_says_why(tmp_path: Path) -> None:
    statements = (
        told("pay", "SELECT ?", "scan"),
        told("report", "SELECT sum(a)", "scan sort"),
        told("pay", "CALL f()", None, "no engine has a plan for such a statement"),
        told("pay", "INSERT ?", ""),
        told("pay", "UPDATE ?", "unreadable"),
    )
    made = running(tmp_path, Explained(statements=statements, unreached={"pay": "row missing"}))
    found = plans_of(made, seed=99)
    assert [one.statement for one in found.statements] == ["pay.1", "report", "pay.2", "pay.3", "pay.4"]
    assert [one.summary for one in found.statements] == ["scan", "scan -> sort", "", "", ""]
    assert [one.why_not for one in found.statements][2:] == [
        "no engine has a plan for such a statement",
        "it needs no plan",
        "its plan cannot be read: the plan has another form",
    ]
    assert found.unreached == {"pay": "row missing"}
    assert isinstance(made.load, Told)
    assert [job.seed for job in made.load.asked] == [99], (
        "the same values in all trials, whatever their block"
    )


def test_rows_are_of_the_very_plan_that_was_told(tmp_path: Path) -> None:
    """The same answers come twice: plans first, and then those of statements that were executed."""
    statements = (told("report", "SELECT ?", "scan sort"), told("pay", "UPDATE ?", None, "it is a write"))
    made = running(tmp_path, Explained(statements=statements, unreached={}))
    assert isinstance(made.load, Told)
    same, other = (told("report", "SELECT ?", f"{EXECUTED}{plan}") for plan in ("scan sort", "sort scan"))
    for executed, rows, why in (
        ((same,), ((5.0, 100.0), (5.0, 100.0)), ""),
        ((other,), (), "it had another plan when it was executed"),
        ((), (), "it was not met again in time"),
    ):
        made.load.executed = Explained(statements=executed, unreached={})
        found = plans_of(made, seed=3, actual_rows=True).statements
        assert (found[0].rows, found[0].rows_why_not, found[0].summary) == (rows, why, "scan -> sort")
        assert (found[1].rows, found[1].rows_why_not, found[1].why_not) == ((), "", "it is a write")
        assert [job.actual_rows for job in made.load.asked[-2:]] == [False, True]
    assert not any(one.rows for one in plans_of(made, seed=3).statements), "nobody asked for them"


def test_a_failure_is_told_of_and_is_none_of_the_trials(tmp_path: Path) -> None:
    found = plans_of(running(tmp_path, DriverFailed("the server died", "look at its log")), seed=1)
    assert (found.why_not, found.statements) == ("the server died", ())


def test_plans_belong_to_timed_loads_of_blocks(tmp_path: Path) -> None:
    made = running(tmp_path)
    assert has_plans(a_trial(), PHASE, made)
    assert not has_plans(a_trial(block=NO_BLOCK), PHASE, made), "restarts and counted work are not compared"
    assert not has_plans(a_trial(), PHASE.but(watched=True), made), "a soak compares none"
    assert not has_plans(a_trial(), PHASE.but(rests=True), made)
    silent = replace(made, setup=replace(made.setup, engine=replace(made.setup.engine, plans=None)))
    assert not has_plans(a_trial(), PHASE, silent)


def test_a_long_plan_is_cut_and_its_digest_is_of_the_whole() -> None:
    steps = tuple(PlanStep("scan", ("x" * 500,)) for _ in range(STEPS_MOST + 1))
    one, other = planned("q", "SELECT ?", steps), planned("q", "SELECT ?", (*steps, PlanStep("sort")))
    assert len(one.steps) == STEPS_MOST and all(len(line) <= LINE_MOST for line in one.steps)
    assert one.steps == other.steps and one.digest != other.digest


def asking(response: str, engine: str = "sqlite") -> Study:
    return study_of(engine, {}).but(goal=Goal(response=response))


def text_bytes(running: Running) -> float:
    """What all rows hold, before a test adds some."""
    return RowsAround(running, asking(SPACE)).totals(running)[ROWS]


def add_notes(running: Running) -> None:
    """A thousand rows of 204 bytes, of which half get four more. NULL is no text, and an accent takes two."""
    for first in range(1000, 2000, 250):
        rows = ", ".join(f"({number}, '{'é' * 100}', NULL)" for number in range(first, first + 250))
        running.ask(f"INSERT INTO notes VALUES {rows}")
    running.ask("UPDATE notes SET more = 'more' WHERE id < 1500")


NOTES = "CREATE TABLE notes (id INTEGER NOT NULL PRIMARY KEY, word VARCHAR(300), more VARCHAR(10))"
NOTES_BYTES, CHANGES, MEAN_BYTES = 206_000.0, 1_500, 206.0
OF_TPCB = ("accounts", "branches", "tellers", "history")


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["mariadb", "mysql", "postgresql"])
def test_rows_of_a_known_size_are_as_long_as_they_were_written(engine: str, homes_with_data: Path) -> None:
    reference = study_of(engine, {}).engine
    try:
        locate(reference)
    except DynoError as missing:
        pytest.skip(f"{engine} cannot be had here: {missing.message}")
    with tried(engine) as found:
        running = found.running
        require_counted_disk(running.setup.data)
        running.ask(NOTES)
        # MariaDB counts all tables together, so that there others would blur the mean.
        for table in OF_TPCB if engine == "mariadb" else ():
            running.ask(f"DROP TABLE pgbench_{table}")
        before = text_bytes(running)
        rows = RowsAround(running, asking(WRITE))
        add_notes(running)
        totals = rows.totals(running)
    assert totals[ROWS] - before == NOTES_BYTES
    assert totals[WRITTEN] > NOTES_BYTES, "each row goes into the log at least"
    assert totals[CHANGED] == pytest.approx(CHANGES * MEAN_BYTES, rel=0.02)


@pytest.mark.engine
def test_files_are_those_of_the_tables(homes_with_data: Path) -> None:
    with tried("sqlite") as found:
        found.running.ask(NOTES)
        add_notes(found.running)
        totals = RowsAround(found.running, asking(SPACE)).totals(found.running)
        [file] = [one for one in found.running.setup.data.iterdir() if one.name.endswith((".db", ".sqlite"))]
        [[in_log, *_]] = found.running.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        assert in_log == 0 and totals[FILES] == file.stat().st_size
    with tried("mariadb") as found:
        totals = RowsAround(found.running, asking(SPACE)).totals(found.running)
        files = list(found.running.setup.data.rglob("dyno/*.ibd"))
        assert len(files) == len(OF_TPCB) and totals[FILES] == sum(map(allocated_bytes, files))
        found.running.ask("CREATE TABLE apart (id INTEGER) ENGINE = MyISAM")
        with pytest.raises(DynoError, match="space_amplification is not known: not all tables are in files"):
            RowsAround(found.running, asking(SPACE)).totals(found.running)


def allocated_bytes(file: Path) -> int:
    return file.stat().st_blocks * 512


@pytest.mark.engine
def test_what_is_not_known_of_rows_is_refused(homes_with_data: Path) -> None:
    with tried("postgresql") as found:
        running = found.running
        require_counted_disk(running.setup.data)
        rows = RowsAround(running, asking(WRITE))
        with pytest.raises(DynoError, match="the engine counted no row that the load changed"):
            rows.totals(running)
        running.ask("CREATE TABLE gone (id INTEGER)")
        running.ask("INSERT INTO gone VALUES (1)")
        assert rows.totals(running)[CHANGED] == 1
        running.ask("DELETE FROM gone")
        with pytest.raises(DynoError, match="none is left in the table gone that tells how long they are"):
            rows.totals(running)


def test_engines_that_do_not_count_rows_are_named() -> None:
    sqlite, firebird = registry.engine("sqlite"), registry.engine("firebird")
    assert rows_unknown(asking(SPACE), sqlite) == rows_unknown(asking("throughput"), firebird) == ""
    uncounted = "`write_amplification` is not known of SQLite, which does not count the rows that change"
    assert rows_unknown(asking(WRITE), sqlite) == uncounted
    assert "of Firebird, which does not tell what its tables take up" in rows_unknown(asking(SPACE), firebird)


@pytest.mark.engine
def test_a_trial_tells_how_much_it_wrote_for_what_it_changed(homes_with_data: Path) -> None:
    require_counted_disk(homes_with_data)
    study, progress = asking(WRITE, "postgresql"), Stages()
    with open_journal() as journal:
        trial = make_plan(study, Order(seed=1)).trials[0]
        record = run_trial(trial, bench_of(study, journal), progress=progress)
    assert record.outcome is Outcome.MEASURED, record.cause
    # Whoever watches takes each stage of that name for a piece of the load.
    assert [stage for _, stage in progress.seen].count("drive") == 1
    assert record.tally is not None and record.observation is not None
    changed, totals = record.observation.engine_status, record.observation.totals
    rows = sum(changed[f"tup_{one}"] for one in ("inserted", "updated"))
    assert rows == pytest.approx(4 * record.tally.acknowledged, rel=0.02)
    # The longest are accounts, of which one in four rows is.
    assert 10 * rows < totals[CHANGED] < 100 * rows
    ratio = find(WRITE).read(record)
    assert ratio == pytest.approx(totals[WRITTEN] / totals[CHANGED]) and ratio is not None and ratio > 1.0
    assert find(SPACE).read(record) is None, "nobody asked for it"
