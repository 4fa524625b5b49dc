"""Stages around the load: one fills the caches of an index before anything is timed, another asks an engine
how it would execute the statements, and one counts the rows that the load has changed.

An index of vectors is searched through a cache of its graph, which fills with the first searches. So all
queries are asked, pass after pass, until a pass misses no less than the one before it. That is decided by the
server's own counter and by nothing else, so all variants are treated alike.

Plans are asked for after the load and its checks, when nothing is read any more that it could disturb.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dbdyno.driver.job import Closed
from dbdyno.driver.load import ExplainedStatement
from dbdyno.engines.engine import Engine
from dbdyno.engines.facts import PlanStep, ReadPlan, each_step, numbers, plan_lines, titles
from dbdyno.errors import DynoError
from dbdyno.host.clone import sync_file_system
from dbdyno.host.room import disk_written_bytes
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.amplification import (
    CHANGED,
    FILES,
    ROWS,
    SPACE,
    WRITE,
    WRITTEN,
    RowsHeld,
    all_of,
    changed_bytes,
    rows_named,
)
from dbdyno.records.load_words import by_kind
from dbdyno.records.record import NO_PLAN_NEEDED, Filled, Plans, StatementPlan
from dbdyno.study import Study
from dbdyno.study.trials import Phase, Trial

PASSES_MOST = 10
LONGEST_S = 300.0
"""What all passes take together at most."""
BETWEEN_READINGS_S, READINGS_MOST = 0.5, 10
"""Some servers publish late what they counted: PostgreSQL's back ends do so once a second, and when they
end."""
LESS_SHARE, LESS_PER_QUERY = 0.05, 0.5
"""A pass that misses less by no more than the larger of the two misses no less: the rest is chance."""


def has_passes(setup: Setup) -> bool:
    """Whether the load asks a set of queries, of an engine that can say what its caches miss. The server is
    not asked."""
    return bool(setup.job.options.get("dataset") and setup.engine.counters.CACHE_MISSES)


def fill(running: Running, clock: Callable[[], float] = time.monotonic) -> Filled | None:
    """Asks all queries, pass after pass, until the caches stand, or for as long as is allowed. None where
    this version of the server does not say what its caches miss. Raises DynoError where no query of a pass
    succeeded."""
    job, counter = running.setup.job, running.setup.engine.counters.CACHE_MISSES
    if counter not in running.status():
        return None
    # Here, because other loads search no vectors.
    from dbdyno.datasets.vectors import open_vector_set

    queries = open_vector_set(Path(str(job.options["dataset"]))).queries
    # It writes nothing, because every trial begins with the same rows.
    asking = {**job.options, "write_share": 0.0, "score_share": 0.0}
    one_pass = job.but(
        options=asking, load=Closed(), ramp_s=0.0, warmup_s=0.0, slices=None, settle_s=0.0, operations=queries
    )
    over, misses, errors = clock() + LONGEST_S, list[float](), Counter[str]()
    before = published(running, counter)
    while len(misses) < PASSES_MOST and not stands(misses) and (left_s := over - clock()) > 0.0:
        tally = running.load.run(one_pass.but(duration_s=left_s))
        errors.update(tally.errors)
        if tally.interrupted or clock() > over:
            # What is left of a pass was cut off: it cannot be compared with a whole one.
            break
        if tally.operations == 0:
            why = by_kind(errors) or "none was answered"
            raise DynoError(f"no query succeeded while the caches were filled: {why}")
        after = published(running, counter)
        # Queries that failed were asked as well.
        misses.append((after - before) / queries)
        before = after
    return Filled(
        counter=counter, queries=queries, per_query=tuple(misses), stands=stands(misses), errors=dict(errors)
    )


def published(running: Running, counter: str) -> float:
    """The counter once two readings in a row are the same, or the last of `READINGS_MOST`."""
    before = running.status()[counter]
    for _ in range(READINGS_MOST - 1):
        time.sleep(BETWEEN_READINGS_S)
        after = running.status()[counter]
        if after == before:
            break
        before = after
    return before


def stands(misses: Sequence[float]) -> bool:
    """Whether the last pass missed no less than the one before it."""
    if len(misses) < 2:
        return False
    before, last = misses[-2:]
    return before - last <= max(LESS_SHARE * before, LESS_PER_QUERY)


STEPS_MOST = 60
LINE_MOST = 240
SUMMARY_MOST = 400
DIGEST_LETTERS = 12


def has_plans(trial: Trial, phase: Phase, running: Running) -> bool:
    """Whether plans belong to this load: one of a block that is compared with others."""
    engine, front = running.setup.engine, running.front
    timed = not trial.of_no_block and not phase.watched and not phase.rests and not running.counted
    timed = timed and not phase.tries_rate and not phase.options
    return timed and engine.plans is not None and (front is None or front.passes_sql)


def has_answers(trial: Trial, phase: Phase, running: Running) -> bool:
    """Whether answers and costs of statements belong to this load: one of a block."""
    return not trial.of_no_block and not phase.watched and not phase.rests and not running.counted


def plans_of(running: Running, seed: int, actual_rows: bool = False) -> Plans:
    """Asks for the plan of each kind of statement, once. Values are drawn from `seed`, so that they are the
    same in all variants and blocks. With `actual_rows` each read is then executed for its plan. A failure is
    told of, and is none of the trial's."""
    read = running.setup.engine.plans
    assert read is not None, "an engine without plans is not asked"
    try:
        explained = running.load.explain(running.data_job.but(seed=seed))
    except DynoError as failure:
        return Plans(why_not=failure.message)
    names = _names([one.transaction for one in explained.statements])
    statements = [_plan(name, one, read) for name, one in zip(names, explained.statements, strict=True)]
    if actual_rows:
        # After all plans, because they must be there however long the statements take.
        statements = _with_rows(statements, running, seed, read)
    return Plans(statements=tuple(statements), unreached=explained.unreached)


def _with_rows(
    statements: Sequence[StatementPlan], running: Running, seed: int, read: ReadPlan
) -> list[StatementPlan]:
    """The same with the rows of their steps, where a statement could be executed and had the same plan."""
    try:
        executed = running.load.explain(running.data_job.but(seed=seed, actual_rows=True))
    except DynoError as failure:
        return [one.but(rows_why_not=failure.message) for one in statements]
    told = {one.text: one for one in executed.statements}
    return [one.but(**_rows(one, told.get(one.text), read)) if one.digest else one for one in statements]


def _rows(one: StatementPlan, told: ExplainedStatement | None, read: ReadPlan) -> dict[str, object]:
    if told is None:
        return {"rows_why_not": "it was not met again in time"}
    if told.plan is None:
        return {"rows_why_not": told.why_not}
    try:
        steps = read(told.plan)
    except ValueError as problem:
        return {"rows_why_not": f"its plan cannot be read: {problem}"}
    if planned(one.statement, one.text, steps).digest != one.digest:
        return {"rows_why_not": "it had another plan when it was executed"}
    return {"rows": tuple(step.rows for step in each_step(steps))[:STEPS_MOST]}


def _names(transactions: Sequence[str]) -> list[str]:
    """A name for each statement: its transaction, with its place among those of it where it is not alone."""
    of_all, so_far = Counter(transactions), Counter[str]()
    names = []
    for transaction in transactions:
        so_far[transaction] += 1
        alone = of_all[transaction] == 1
        names.append(transaction if alone else f"{transaction}.{so_far[transaction]}")
    return names


def _plan(name: str, told: ExplainedStatement, read: ReadPlan) -> StatementPlan:
    if told.plan is None:
        return StatementPlan(statement=name, text=told.text, why_not=told.why_not)
    try:
        steps = read(told.plan)
    except ValueError as problem:
        return StatementPlan(statement=name, text=told.text, why_not=f"its plan cannot be read: {problem}")
    if not steps:
        return StatementPlan(statement=name, text=told.text, why_not=NO_PLAN_NEEDED)
    return planned(name, told.text, steps)


def planned(name: str, text: str, steps: tuple[PlanStep, ...]) -> StatementPlan:
    """A statement with its plan, cut where it is very long; the digest is of the whole."""
    shown = list(plan_lines(steps))
    whole = "\n".join(shown).encode()
    cut = [line if len(line) <= LINE_MOST else f"{line[: LINE_MOST - 1]}…" for line in shown[:STEPS_MOST]]
    summary = " -> ".join(titles(steps))
    return StatementPlan(
        statement=name,
        text=text,
        summary=summary if len(summary) <= SUMMARY_MOST else f"{summary[: SUMMARY_MOST - 1]}…",
        steps=tuple(cut),
        digest=hashlib.sha256(whole).hexdigest()[:DIGEST_LETTERS],
    )


LONGEST_COUNT_S = 3600.0
"""What one table takes at most whose rows are all read."""
MEND_ROWS = "take another response, or see to it that the engine tells this in every variant"


def rows_asked(trial: Trial, phase: Phase, study: Study) -> bool:
    """Whether rows are counted around this load: one of a block whose metrics of rows are asked for."""
    timed = not trial.of_no_block and not phase.watched and not phase.rests and not phase.tries_rate
    return timed and bool(rows_named(study.goal))


def rows_unknown(study: Study, engine: Engine) -> str:
    """Why an engine does not know what a study asks of its rows; empty where it does."""
    named = rows_named(study.goal)
    if named and (engine.rows is None or engine.compared is None):
        return f"`{named[0]}` is not known of {engine.title}, which does not tell what its tables take up"
    if WRITE in named and engine.rows is not None and not engine.rows.changed:
        return f"`{WRITE}` is not known of {engine.title}, which does not count the rows that change"
    if named and study.server is not None:
        return f"`{named[0]}` is not known of a server that runs already: all its rows would be read for that"
    return ""


class RowsAround:
    """Counts the rows that a load changes, from its making on, and what the tables hold and take up after it.
    All rows are read for that, when nothing is timed. All raise DynoError where a metric that is asked for
    would not be what it says."""

    def __init__(self, running: Running, study: Study) -> None:
        engine = running.setup.engine
        if why := rows_unknown(study, engine):
            raise DynoError(why, MEND_ROWS)
        assert engine.rows is not None and engine.compared is not None, "else it would not be known"
        self._words, self._compared, self._asked = engine.rows, engine.compared, rows_named(study.goal)
        if running.setup.nodes is not None:
            raise _unknown(self._asked[0], "several nodes write the same rows")
        if running.setup.volume is not None and running.setup.volume.mount is None:
            raise _unknown(self._asked[0], "the data are on a raw device")
        self._before = self._changes(running)
        self._written_bytes = self._on_disk(running)

    def totals(self, running: Running) -> dict[str, float]:
        """What the load came to, by names of totals."""
        written_bytes = self._on_disk(running) - self._written_bytes
        after = self._changes(running, settled=True)
        held = self._held(running)
        found = {ROWS: all_of(held).text_bytes}
        if SPACE in self._asked:
            found[FILES] = self._file_bytes(running)
        if WRITE in self._asked:
            gained = {name: count - self._before.get(name, 0.0) for name, count in after.items()}
            found |= _written(gained, held, written_bytes)
        return found

    def _on_disk(self, running: Running) -> float:
        """What the disk under the data has written so far, with all that was sent to it until now."""
        if WRITE not in self._asked:
            return 0.0
        data = running.setup.data
        try:
            sync_file_system(data)
            found = disk_written_bytes(data)
        except OSError as problem:
            raise _unknown(WRITE, f"the disk under {data} is not told of: {problem}") from None
        if found is None:
            told = f"{WRITE} is not known: the kernel counts no disk under the file system of {data}"
            raise DynoError(told, "give servers volumes of their own (storage.size), or another response")
        return found

    def _changes(self, running: Running, settled: bool = False) -> dict[str, float]:
        """Rows changed so far, by their table; with `settled` once two readings in a row are the same."""
        if WRITE not in self._asked:
            return {}
        found = numbers(running.ask(self._words.changed))
        for _ in range(READINGS_MOST - 1 if settled else 0):
            time.sleep(BETWEEN_READINGS_S)
            before, found = found, numbers(running.ask(self._words.changed))
            if found == before:
                break
        return found

    def _held(self, running: Running) -> dict[str, RowsHeld]:
        columns: dict[str, list[str]] = {}
        for table, column, *_ in running.ask(self._compared.columns):
            columns.setdefault(str(table), []).append(self._compared.quoted(str(column)))
        return {table: self._rows(running, table, held) for table, held in columns.items()}

    def _rows(self, running: Running, table: str, columns: Sequence[str]) -> RowsHeld:
        lengths = " + ".join(f"COALESCE({self._words.length.format(column=one)}, 0)" for one in columns)
        told = f"{self._words.only}{self._compared.quoted(table)}"
        sql = f"SELECT COUNT(*), COALESCE(SUM({lengths}), 0) FROM {told}"
        [[rows, text_bytes]] = running.load.query(running.server.url, sql, LONGEST_COUNT_S)
        return RowsHeld(rows=float(rows or 0), text_bytes=float(text_bytes or 0))

    def _file_bytes(self, running: Running) -> float:
        [[size]] = running.ask(self._words.size)
        if size is None:
            raise _unknown(
                SPACE, "not all tables are in files of their own, of an engine that tells their size"
            )
        return float(size)


def _written(
    gained: Mapping[str, float], held: Mapping[str, RowsHeld], written_bytes: float
) -> dict[str, float]:
    """The totals of write amplification. Raises DynoError where there are none."""
    try:
        changed = changed_bytes(gained, held)
    except ValueError as problem:
        raise _unknown(WRITE, str(problem)) from None
    if changed <= 0:
        raise _unknown(WRITE, "the engine counted no row that the load changed")
    return {WRITTEN: written_bytes, CHANGED: changed}


def _unknown(name: str, why: str) -> DynoError:
    return DynoError(f"{name} is not known: {why}", MEND_ROWS)
