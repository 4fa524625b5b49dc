"""Whether a run was registered before it began, which other runs of the same study there are, and what else
belongs to it.

What a run did otherwise than it was registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.frozen import Frozen
from dbdyno.records.chain import RegisteredPlan, Rerun
from dbdyno.records.run import BaseRun
from dbdyno.report.document import ColumnKind, Detail, Lines, Link, Section, table
from dbdyno.report.words.numbers import moment_text, plural
from dbdyno.study import Study

LEFT_OPEN = frozenset({"seed", "interval"})
"""What a study may leave to each run. Where it does, no run departs from it."""


class Departure(Frozen):
    """One thing that a run did otherwise: what a plan said of it, and what was carried out."""

    name: str
    registered: str
    carried_out: str


def plan_of(study: Study, sequential: bool = False, budget_s: float | None = None) -> RegisteredPlan:
    """How a study is to be carried out and analysed. A search has its time from the study."""
    load, goal = study.workload, study.goal
    return RegisteredPlan(
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


def _differing(planned: RegisteredPlan, done: RegisteredPlan) -> Iterator[Departure]:
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


NAMED_MOST = 5
"""So many other runs are named one by one."""


def sections(analysis: Analysis, reruns: Sequence[Rerun] | None) -> Iterator[Section]:
    """What the run says of itself and, where its store was asked, what that says of other runs. A terminal
    shows it where there is more to say than that nothing was registered."""
    run = analysis.run
    if run.of_logs:
        return
    lines = [registered_text(analysis.study, run)]
    others = [one for one in reruns or () if one.run != run.run]
    if reruns is not None:
        lines.append(others_text(others))
    telling = run.registered is not None or bool(others)
    yield Section("Registration", (Lines(tuple(lines)),), detail=Detail.BRIEF if telling else Detail.TEXT)


def registered_text(study: Study, run: BaseRun) -> str:
    """One sentence: whether the run was registered, when, and whether it kept to that."""
    entry = run.registered
    if entry is None:
        return "This run was not registered: nobody wrote down beforehand what it would measure."
    when = moment_text(entry.registered_unix_s)
    told = (
        f"This run was registered before it began, on {when}, as entry {entry.number} ({entry.digest[:12]})"
    )
    found = departures(study, run)
    if not found:
        return f"{told}, and was carried out as registered."
    return f"{told}, but was carried out otherwise: {departures_text(found)}."


def departures_text(found: Sequence[Departure]) -> str:
    """What was carried out otherwise than it was registered."""
    return "; ".join(f"{one.name} {one.carried_out} in place of {one.registered}" for one in found)


def others_text(others: Sequence[Rerun]) -> str:
    """One sentence on the other runs of the same study in the store: how many, which, and who saw them."""
    if not others:
        return "The store knows no other run of this study."
    named = ", ".join(f"{one.run} ({state_text(one)})" for one in others[:NAMED_MOST])
    more = f", and {len(others) - NAMED_MOST} more" if len(others) > NAMED_MOST else ""
    return f"The store knows {plural(len(others), 'other run')} of this study: {named}{more}."


def state_text(one: Rerun) -> str:
    """What became of a run: registered or not, shown or not, and whether its records are still there."""
    said = ["registered" if one.registration is not None else "not registered"]
    said.append("published" if one.published else "not published")
    return ", ".join([*said, *([] if one.kept else ["deleted"])])


class Belonging(Frozen):
    """Something that belongs to a run: `what` it is, the `command` that shows it, its `path` among the pages
    of `dyno serve`, and its `page` among the reports. Each is empty where there is none."""

    what: str
    command: str = ""
    path: str = ""
    page: str = ""


OpenedBy = Callable[[Belonging], str]
"""The address by which a page leads to something; empty where it does not."""


def by_nothing(_: Belonging) -> str:
    """Nobody knows where the page will be, so it leads nowhere."""
    return ""


def among_reports(one: Belonging) -> str:
    """From a page that lies among the reports."""
    return one.page


def when_served(one: Belonging) -> str:
    """From a page that `dyno serve` draws."""
    return one.path


def belonging_sections(found: Sequence[Belonging], opened_by: OpenedBy) -> Iterator[Section]:
    """What belongs to a run, a row each; nothing where nothing does."""
    rows = [(Link(one.what, href) if (href := opened_by(one)) else one.what, one.command) for one in found]
    if rows:
        kinds = {"what": ColumnKind.TEXT, "shown by": ColumnKind.CODE}
        yield Section(
            "What belongs to this run",
            (table(("what", "shown by"), rows, kinds, first=ColumnKind.TEXT, dense=True),),
            detail=Detail.TEXT,
        )
