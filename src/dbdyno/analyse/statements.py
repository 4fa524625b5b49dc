"""How long a transaction waits for its statements, kind by kind, where the driver timed them.

The time in a kind of statement is summed over a trial and divided by the transactions that ended well in its
measured part, so that what retries and roll-backs cost is in it. Kinds are matched by their text, so that
those of two variants stand beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.split import estimate
from dbdyno.analyse.times import StatementTime, StatementTimes
from dbdyno.driver.tally import Tally
from dbdyno.records.record import Outcome, Record


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
        us_per_op=estimate("us_per_op", [*times_us, *unmet], confidence),
        errors=sum(found.errors for found, _ in met),
    )
