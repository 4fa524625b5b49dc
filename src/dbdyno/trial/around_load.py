"""Two stages around the load: one fills the caches of an index before anything is timed, the other asks an
engine how it would execute the statements.

An index of vectors is searched through a cache of its graph, which fills with the first searches. So all
queries are asked, pass after pass, until a pass misses no less than the one before it. That is decided by the
server's own counter and by nothing else, so all variants are treated alike.

Plans are asked for after the load and its checks, when nothing is read any more that it could disturb.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from dbdyno.driver.job import Closed
from dbdyno.driver.load import ExplainedStatement
from dbdyno.engines.facts import PlanStep, ReadPlan, each_step, plan_lines, titles
from dbdyno.errors import DynoError
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.load_words import by_kind
from dbdyno.records.record import NO_PLAN_NEEDED, Filled, Plans, StatementPlan
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
