"""What each factor does over all settings of the others, and how far two of them multiply."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.model import Analysis, FactorEffect, Interaction
from dbdyno.report.document import Mark, Notes, Row, Section, Tone, table
from dbdyno.report.words import naming, numbers

HEADS = ("effect of", "ratio", "interval", "blocks", "combinations")
NOTE = (
    "Main effects are averaged over the levels of all other factors; with the study's"
    " confidence, none of their intervals and of the verdicts' is wrong. ×: how far two factors together are"
    " from the product of each alone (1: they multiply);"
    " with the same confidence, none of these intervals is wrong."
)


def sections(analysis: Analysis) -> Iterator[Section]:
    """A row for each main effect and each interaction of a factorial study."""
    found = analysis.factorial
    if found is None or not (found.main or found.interactions):
        return
    rows = [
        *(_row(naming.main_text(one), one) for one in found.main),
        *(_row(naming.pair_text(one), one) for one in found.interactions),
    ]
    yield Section("Factors", (table(HEADS, rows, dense=True), Notes((NOTE,))))


def _row(name: str, one: FactorEffect | Interaction) -> Row:
    ratio = numbers.ratio_text(one.effect.ratio)
    return (
        name,
        Mark(ratio, Tone.STRONG) if numbers.differs(one.effect) else ratio,
        numbers.interval_text(one.effect),
        str(one.effect.pairs),
        f"{one.settings} of {one.settings_planned}",
    )
