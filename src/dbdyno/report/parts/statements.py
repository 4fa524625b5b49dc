"""How long a transaction waits for its statements: a row per kind, a column per variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.times import StatementTime, StatementTimes
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Detail, From, Lines, Notes, Section, Table, table
from dbdyno.report.parts.split import with_half
from dbdyno.report.words import numbers

TITLE = "Time by statement"
NOTE = (
    "How long a client waited for the statements of each kind, in us per transaction that ended well. What "
    "retries and roll-backs cost is in it. Means over trials; ±: half the interval, each by itself. Per op: "
    "how many a transaction has, the mean of all variants. In a statement ? stands for a value, and N for "
    "the number at the end of a name."
)
KINDS_MOST = 15
"""Kinds with a row of their own; one row sums up the others."""
VARIANTS_MOST = 4
"""Variants beside each other on a terminal; the page has room for more."""


def sections(found: Sequence[StatementTimes]) -> Iterator[Section]:
    """The table, or where to find it when it has too many columns for a terminal."""
    if not found:
        return
    body = (kinds(found), Notes((NOTE,)))
    elsewhere = f"The page and Markdown have it for {numbers.plural(len(found), 'variant')}."
    below = body if len(found) <= VARIANTS_MOST else (Lines((elsewhere,)),)
    yield Section(TITLE, (From(Detail.TEXT, body, below),), detail=Detail.DETAILS)


def kinds(found: Sequence[StatementTimes]) -> Table:
    """A row per kind, with how many a transaction has and a column for each variant: those with the most time
    in all variants first, then one for all further kinds."""
    by_text = _by_text(found)
    shown = sorted(by_text, key=lambda text: -sum(kind.us_per_op.mean for kind in by_text[text].values()))
    lines = [_row(text, by_text[text], found) for text in shown[:KINDS_MOST]]
    rest = shown[KINDS_MOST:]
    if rest:
        sums = [
            sum(by_text[text][one.variant].us_per_op.mean for text in rest if one.variant in by_text[text])
            for one in found
        ]
        lines.append([numbers.plural(len(rest), "further kind"), "", *map(number_text, sums)])
    return table(["statement", "per op", *(one.variant for one in found)], lines, dense=True)


def _by_text(found: Sequence[StatementTimes]) -> dict[str, dict[str, StatementTime]]:
    """Each kind by the names of the variants that met it."""
    by_text: dict[str, dict[str, StatementTime]] = {}
    for one in found:
        for kind in one.kinds:
            by_text.setdefault(kind.text, {})[one.variant] = kind
    return by_text


def _row(text: str, kinds: dict[str, StatementTime], found: Sequence[StatementTimes]) -> list[str]:
    per_op = sum(kind.per_op for kind in kinds.values()) / len(found)
    times = (kinds.get(one.variant) for one in found)
    return [
        text,
        number_text(per_op),
        *(numbers.DASH if kind is None else with_half(kind.us_per_op) for kind in times),
    ]
