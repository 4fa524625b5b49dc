"""The stage that asks an engine how it would execute the statements of the load.

It comes after the load and its checks, when nothing is read any more that it could disturb.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from dbdyno.driver.load import ExplainedStatement
from dbdyno.engines.facts import ReadPlan, Step, lines, titles
from dbdyno.errors import DynoError
from dbdyno.layers.setup import Running
from dbdyno.records.record import NO_PLAN_NEEDED, Plans, StatementPlan
from dbdyno.study.phases import Phase
from dbdyno.study.trials import Trial

STEPS_MOST = 60
LINE_MOST = 240
SUMMARY_MOST = 400
DIGEST_LETTERS = 12


def has_plans(trial: Trial, phase: Phase, running: Running) -> bool:
    """Whether plans belong to this load: one of a block that is compared with others."""
    engine, front = running.setup.engine, running.front
    timed = not trial.of_no_block and not phase.watched and not phase.rests and not running.counted
    return timed and engine.plans is not None and front is None


def plans_of(running: Running, seed: int) -> Plans:
    """Asks for the plan of each kind of statement, once. Values are drawn from `seed`, so that they are the
    same in all variants and blocks. A failure is told of, and is none of the trial's."""
    read = running.setup.engine.plans
    assert read is not None, "an engine without plans is not asked"
    try:
        explained = running.load.explain(running.data_job.but(seed=seed))
    except DynoError as failure:
        return Plans(why_not=failure.message)
    names = _names([one.transaction for one in explained.statements])
    statements = [_plan(name, one, read) for name, one in zip(names, explained.statements, strict=True)]
    return Plans(statements=tuple(statements), unreached=explained.unreached)


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


def planned(name: str, text: str, steps: tuple[Step, ...]) -> StatementPlan:
    """A statement with its plan, cut where it is very long; the digest is of the whole."""
    shown = list(lines(steps))
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
