"""What variants differ in from the baseline, by instructions counted per transaction.

Nothing is sampled, so a ratio has no interval. But a server works by itself now and then, and repeats differ
by that. So a ratio is told from 1 where Student's interval of the repeats leaves 1 out, all variants together
(Šidák), and where the difference is not as small as what mere addresses make: of placebos, which hold the
same instructions in another order, up to 0.2 % was counted more or less (PostgreSQL 15 and MariaDB 10.11).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from dbdyno.analyse.found import CountedVariant, InstructionChange
from dbdyno.analyse.quantiles import confidence_each, t_quantile
from dbdyno.records.binary import base_name
from dbdyno.records.record import INSTRUCTIONS, Counted, Outcome, Record

CONFIDENCE = 0.95
DIFFERENCE_LEAST = 0.003
"""A smaller one is none: counts of one build repeat to a tenth of a per cent."""
FUNCTIONS_MOST = 20
"""So many functions are kept of those in which a variant differs from the baseline."""


def counted_work(records: Sequence[Record], baseline: str) -> tuple[CountedVariant, ...]:
    """What was counted of each variant, in the order of the trials, against the variant named `baseline`."""
    against = next((_of(record) for record in records if record.variant == baseline), None)
    compared = sum(record.variant != baseline and _of(record) is not None for record in records)
    each = confidence_each(CONFIDENCE, compared)
    return tuple(
        _counted_variant(record, None if record.variant == baseline else against, each)
        for record in sorted(records, key=lambda record: record.trial)
    )


def _counted_variant(record: Record, against: Counted | None, confidence: float) -> CountedVariant:
    found = CountedVariant(variant=record.variant, trial=record.trial)
    counted = _of(record)
    if counted is None:
        return found.but(cause=record.cause or record.outcome.value)
    per_op = counted.per_op[INSTRUCTIONS]
    found = found.but(instructions_per_op=per_op, spread=spread(counted))
    if against is None:
        return found
    logs = _paired_logs(counted, against)
    compared = {
        "ratio": math.exp(statistics.median(logs)) if logs else per_op / against.per_op[INSTRUCTIONS],
        "told": _apart(logs, confidence),
        "changes": changes(counted, against)[:FUNCTIONS_MOST],
    }
    return found.but(**compared)


def _of(record: Record) -> Counted | None:
    """What a trial counted; nothing where it broke."""
    return record.counted if record.outcome is Outcome.MEASURED else None


def _paired_logs(one: Counted, other: Counted) -> list[float]:
    """The log ratio of each repeat to the other's of its number, because both draw the same transactions on
    the same data. Empty where the repeats are not as many."""
    if len(one.repeats) != len(other.repeats):
        return []
    return [math.log(ours / theirs) for ours, theirs in zip(one.repeats, other.repeats, strict=True)]


def _apart(logs: Sequence[float], confidence: float) -> bool:
    """Whether Student's interval of the repeats' log ratios leaves out 0, by a difference that counts."""
    if len(logs) < 2:
        return False
    half = t_quantile(confidence, len(logs)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return abs(statistics.fmean(logs)) > max(half, math.log1p(DIFFERENCE_LEAST))


def changes(counted: Counted, against: Counted) -> tuple[InstructionChange, ...]:
    """What each function executes in `counted` beyond `against`, the largest change first.

    Changes add up to the change of the whole but for functions that neither record holds.
    """
    ours, theirs = _own(counted), _own(against)
    whole = counted.per_op[INSTRUCTIONS] - against.per_op[INSTRUCTIONS]
    found = [
        InstructionChange(
            name=name,
            module=module,
            own=ours.get((name, module), 0.0),
            against=theirs.get((name, module), 0.0),
            change=(change := ours.get((name, module), 0.0) - theirs.get((name, module), 0.0)),
            share=change / whole if whole else None,
        )
        for name, module in dict.fromkeys([*ours, *theirs])
    ]
    return tuple(sorted((one for one in found if one.change), key=lambda one: (-abs(one.change), one.name)))


def spread(counted: Counted) -> float:
    """The largest repeat over the smallest, less one; 0 for a single one."""
    return max(counted.repeats) / min(counted.repeats) - 1.0 if counted.repeats else 0.0


def _own(counted: Counted) -> dict[tuple[str, str], float]:
    """By the names of the source, because another build may split and copy its functions otherwise."""
    own: dict[tuple[str, str], float] = {}
    for function in counted.functions:
        key = base_name(function.name), function.module
        own[key] = own.get(key, 0.0) + function.own[INSTRUCTIONS]
    return own
