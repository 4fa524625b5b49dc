"""Which variants have no further trial, because of what their records show."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.records.record import Outcome, Record
from dbdyno.study.trials import Variant


def leaves_out(record: Record) -> bool:
    """Whether a record can leave a variant out by what stands below."""
    return record.outcome is Outcome.INERT or (record.block == 0 and record.outcome is Outcome.BLOCKED)


def inert_in(records: Sequence[Record]) -> frozenset[str]:
    """The variants whose build was found to be the baseline's: they have no further trial."""
    return frozenset(record.variant for record in records if record.outcome is Outcome.INERT)


def over_for_good(variants: Sequence[Variant], records: Sequence[Record]) -> frozenset[str]:
    """The inert variants; all variants, the baseline too, where that leaves none to compare it with, and no
    placebo or twin to measure luck and noise by."""
    ended = [record for record in records if record.outcome is not Outcome.MEASURED]
    inert, blocked = inert_in(ended), blocked_at_first(ended)
    others = [variant for variant in variants[1:] if not variant.shares]
    candidates = {variant.name for variant in others if variant.candidate}
    beside = {variant.name for variant in others if not variant.candidate}
    is_over = candidates and candidates <= inert and beside <= blocked
    return frozenset(variant.name for variant in variants) if is_over else inert


def blocked_at_first(records: Sequence[Record]) -> frozenset[str]:
    """The variants that the first block found blocked: another trial of them would only take time."""
    return frozenset(
        record.variant for record in records if record.block == 0 and record.outcome is Outcome.BLOCKED
    )
