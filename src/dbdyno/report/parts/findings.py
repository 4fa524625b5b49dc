"""What did not help in a run, and what makes its trials doubtful."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.model import Analysis, Exhibit
from dbdyno.frozen import listed
from dbdyno.records.record import Doubt
from dbdyno.report.document import Item, Items, Mark, Section, Tone
from dbdyno.report.words import doubts, numbers, remarks, verdicts

NAMED_MOST, DETAILS_MOST = 3, 4


def sections(analysis: Analysis) -> Iterator[Section]:
    """The museum, then the warnings."""
    if analysis.museum:
        items = tuple(_exhibit(room, analysis) for room in remarks.rooms(analysis))
        yield Section(
            "The museum: what did not help, and why",
            (Items(items, ("variant", "outcome", "cause", "what would help")),),
        )
    seen = [warning for warning in doubts.WARNINGS if any(warning in one.warnings for one in analysis.trials)]
    if seen:
        items = tuple(_warning(warning, analysis) for warning in seen)
        yield Section(
            "Warnings", (Items(items, ("what makes trials doubtful", "seen in", "", "what to do")),)
        )


def _exhibit(room: list[Exhibit], analysis: Analysis) -> Item:
    """What ended alike, told once."""
    first = room[0]
    return Item(
        Mark(verdicts.marked(first.verdict), first.verdict),
        listed([one.variant for one in room]),
        (remarks.exhibit_text(first, analysis),),
        first.remedy,
        small=tuple(
            f"{one.factor}: requested {one.requested}"
            + (f", read back {one.effective.value} ({one.effective.source})" if one.effective else "")
            for one in first.evidence
            if not one.in_effect
        ),
    )


def _warning(warning: Doubt, analysis: Analysis) -> Item:
    advice = doubts.WARNINGS[warning]
    trials = [trial for trial in analysis.trials if warning in trial.warnings]
    names = [variant.name for variant in analysis.variants if warning in variant.warnings]
    details = list(dict.fromkeys(trial.warnings[warning] for trial in trials))
    rest = f"; and {len(details) - DETAILS_MOST} more" if len(details) > DETAILS_MOST else ""
    where = f" ({listed(names, NAMED_MOST)})" if names else ""
    return Item(
        Mark(f"! {numbers.plural(len(trials), 'trial')}", Tone.DOUBT),
        f"{advice.text}{where}",
        (),
        advice.next_step,
        small=(f"{'; '.join(details[:DETAILS_MOST])}{rest}",),
    )
