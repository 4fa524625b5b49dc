"""How long a transaction waits for its statements: a row per kind, a column per variant.

How long a transaction waits for its statements, kind by kind, where the driver timed them.

The time in a kind of statement is summed over a trial and divided by the transactions that ended well in its
measured part, so that what retries and roll-backs cost is in it. Kinds are matched by their text, so that
those of two variants stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import HAS_STATEMENTS
from dbdyno.analyse.found import StatementTime, StatementTimes
from dbdyno.analyse.split import estimated_mean
from dbdyno.driver.tally import Tally
from dbdyno.findings.split import with_half
from dbdyno.records.metrics import number_text
from dbdyno.records.record import Outcome, Record
from dbdyno.report.document import Detail, From, Lines, Notes, Section, Table, table
from dbdyno.report.words import numbers


def statement_times(records: Sequence[Record], confidence: float) -> tuple[StatementTimes, ...]:
    """The times of each variant with measured trials that timed statements, in the order of the records."""
    by_variant: dict[str, list[Tally]] = {}
    for record in records:
        tally = record.tally if record.outcome is Outcome.MEASURED else None
        if tally is not None and tally.by_statement and tally.work > 0:
            by_variant.setdefault(record.variant, []).append(tally)
    return tuple(
        StatementTimes(variant=variant, trials=len(tallies), kinds=_kinds(tallies, confidence))
        for variant, tallies in by_variant.items()
    )


def _kinds(tallies: Sequence[Tally], confidence: float) -> tuple[StatementTime, ...]:
    texts = dict.fromkeys(text for tally in tallies for text in tally.by_statement)
    kinds = [_kind(text, tallies, confidence) for text in texts]
    return tuple(sorted(kinds, key=lambda kind: -kind.us_per_op.mean))


def _kind(text: str, tallies: Sequence[Tally], confidence: float) -> StatementTime:
    """One kind over all trials of a variant. A trial that never met it spent no time in it."""
    met = [(tally.by_statement[text], tally.work) for tally in tallies if text in tally.by_statement]
    times_us = [found.latency_us.sum / operations for found, operations in met]
    unmet = [0.0] * (len(tallies) - len(met))
    return StatementTime(
        text=text,
        per_op=sum(found.latency_us.count for found, _ in met) / sum(tally.work for tally in tallies),
        us_per_op=estimated_mean("us_per_op", [*times_us, *unmet], confidence),
        errors=sum(found.errors for found, _ in met),
    )


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


def find(basis: Basis) -> tuple[StatementTimes, ...]:
    """Of each variant whose statements were timed."""
    return statement_times(basis.whole(HAS_STATEMENTS), basis.confidence)


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
