"""Whether a run was registered before it began, and which other runs of the same study there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.registered import Departure, departures
from dbdyno.records.chain import Rerun
from dbdyno.records.run import BaseRun
from dbdyno.report.document import Detail, Lines, Section
from dbdyno.report.words.moments import moment_text
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study

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
