"""What two variants differ in, by instructions counted per transaction: no sampling, so no interval."""

from __future__ import annotations

from dbdyno.frozen import Frozen
from dbdyno.records.record import INSTRUCTIONS, Counted


class InstructionChange(Frozen):
    """A function's own instructions per transaction in two variants: `change` = `own` - `against`.

    `share` is the change over the change of all functions together, None where those do not differ.
    """

    name: str
    module: str
    own: float
    against: float
    change: float
    share: float | None


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
    own: dict[tuple[str, str], float] = {}
    for function in counted.functions:
        key = function.name, function.module
        own[key] = own.get(key, 0.0) + function.own[INSTRUCTIONS]
    return own
