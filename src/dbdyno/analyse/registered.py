"""What a run did otherwise than it was registered."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.frozen import Frozen
from dbdyno.records.chain import Plan
from dbdyno.records.run import BaseRun
from dbdyno.study import Study

LEFT_OPEN = frozenset({"seed", "interval"})
"""What a study may leave to each run. Where it does, no run departs from it."""


class Departure(Frozen):
    """One thing that a run did otherwise: what a plan said of it, and what was carried out."""

    name: str
    registered: str
    carried_out: str


def plan_of(study: Study, sequential: bool = False, budget_s: float | None = None) -> Plan:
    """How a study is to be carried out and analysed. A search has its time from the study."""
    load, goal = study.workload, study.goal
    return Plan(
        design=study.design,
        blocks=study.blocks,
        sequential=sequential,
        seed=study.seed,
        budget_s=study.search.time_s if study.search is not None and budget_s is None else budget_s,
        clients=load.clients,
        warmup_s=load.warmup_s,
        duration_s=load.duration_s,
        response=goal.response,
        margin=goal.margin,
        confidence=goal.confidence,
        interval=goal.interval,
        guards=tuple(guard.text for guard in goal.guards),
    )


def departures(study: Study, run: BaseRun) -> tuple[Departure, ...]:
    """What differs between the plan that was registered and that of the run. `study` is the run's, as it was
    carried out. Empty for a run that was not registered."""
    if run.registered is None:
        return ()
    planned, done = run.registered.plan, plan_of(study, run.sequential, run.budget_s)
    return tuple(_differing(planned, done))


def _differing(planned: Plan, done: Plan) -> Iterator[Departure]:
    for name, registered in planned:
        carried_out = getattr(done, name)
        if registered == carried_out or (registered is None and name in LEFT_OPEN):
            continue
        yield Departure(name=name, registered=_text(registered), carried_out=_text(carried_out))


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) or "none" if isinstance(value, tuple) else str(value)
