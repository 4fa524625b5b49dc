"""From samples of stacks to microseconds per operation: one variant's profile, and what two differ in.

A function's CPU time is its share of the samples' weight, times the CPU time per operation that the kernel
counted in the same trial. The sampling error is that of the weights (for equal weights: the square root of
the count); how far one trial differs from the next it does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from dbdyno.frozen import Frozen

UNKNOWN = "[unknown]"
NORMAL_95 = 1.96
KERNEL_MARK = "_[k]"
"""How flame graphs mark a function of the kernel."""

Frame = tuple[str, str]
"""A function and the module (file) that it is in."""


class Stack(Frozen):
    """One stack of calls, root first, and the CPU time per operation at its leaf, in microseconds."""

    frames: tuple[str, ...]
    us: float
    variance: float = 0.0


class Profile(Frozen):
    """Where one variant's CPU time per operation was spent, from samples of its stacks.

    `way` is how callers were found, `event` what was counted; `unresolved_share` of the time lies in code
    whose file names no function there.
    """

    variant: str
    samples: int
    cpu_us_per_op: float
    unresolved_share: float
    stacks: tuple[Stack, ...]
    way: str = ""
    event: str = ""


class FunctionTime(Frozen):
    """A function's own CPU time per operation and that with all it calls, in microseconds; `half_us` is half
    the 95 % interval of the own time from sampling alone.
    """

    name: str
    own_us: float
    half_us: float
    whole_us: float


class FunctionChange(Frozen):
    """A function's own CPU time per operation in two variants: `change_us` = `us` - `against_us`."""

    name: str
    us: float
    against_us: float
    change_us: float
    half_us: float
    share: float | None


def profile_of(
    variant: str,
    samples: Iterable[tuple[int, tuple[Frame, ...]]],
    cpu_us_per_op: float,
    **facts: object,
) -> Profile | None:
    """The profile of one variant from (weight, frames from root to leaf); None without a sample.

    A frame without a symbol is shown as its module in brackets, so that what is unknown of one library is
    one box.
    """
    weights: dict[tuple[str, ...], float] = {}
    squares: dict[tuple[str, ...], float] = {}
    count, unresolved, total = 0, 0.0, 0.0
    for weight, frames in samples:
        stack = tuple(_shown(frame) for frame in frames)
        weights[stack] = weights.get(stack, 0.0) + weight
        squares[stack] = squares.get(stack, 0.0) + weight * weight
        unresolved += weight * (frames[-1][0] == UNKNOWN)
        count, total = count + 1, total + weight
    if total <= 0.0:
        return None
    scale = cpu_us_per_op / total
    return Profile(
        variant=variant,
        samples=count,
        cpu_us_per_op=cpu_us_per_op,
        unresolved_share=unresolved / total,
        stacks=tuple(
            Stack(frames=stack, us=weight * scale, variance=squares[stack] * scale * scale)
            for stack, weight in sorted(weights.items())
        ),
        **facts,  # type: ignore[arg-type]  # the caller's own fields of Profile
    )


def _shown(frame: Frame) -> str:
    function, module = frame
    if function == UNKNOWN:
        return f"[{module.rsplit('/', 1)[-1].strip('[]')}]"
    return function + KERNEL_MARK if module.startswith("[kernel") else function


def functions(profile: Profile) -> tuple[FunctionTime, ...]:
    """Every function's own time and its time with all that it calls, the largest own time first."""
    own: dict[str, float] = {}
    variance: dict[str, float] = {}
    whole: dict[str, float] = {}
    for stack in profile.stacks:
        leaf = _leaf(stack.frames)
        own[leaf] = own.get(leaf, 0.0) + stack.us
        variance[leaf] = variance.get(leaf, 0.0) + stack.variance
        # A function that calls itself is on the stack twice, and spent the time once.
        for name in {*stack.frames, leaf}:
            whole[name] = whole.get(name, 0.0) + stack.us
    times = [
        FunctionTime(
            name=name,
            own_us=own.get(name, 0.0),
            half_us=NORMAL_95 * math.sqrt(variance.get(name, 0.0)),
            whole_us=us,
        )
        for name, us in whole.items()
    ]
    return tuple(sorted(times, key=lambda time: (-time.own_us, -time.whole_us, time.name)))


def _leaf(frames: tuple[str, ...]) -> str:
    """The function that was running; one without a symbol is told by the nearest caller that has one."""
    if not frames[-1].startswith("["):
        return frames[-1]
    named = next((name for name in reversed(frames) if not name.startswith("[")), None)
    return f"{frames[-1]} below {named}" if named else frames[-1]


def changed_times(profile: Profile, against: Profile) -> tuple[FunctionChange, ...]:
    """What each function's own time is in `profile` beyond `against`, the largest change first.

    `share` is the change over the change of the whole CPU time; shares add up to 1.
    """
    ours, theirs = _by_name(functions(profile)), _by_name(functions(against))
    whole = profile.cpu_us_per_op - against.cpu_us_per_op
    found = [
        _change(name, ours.get(name), theirs.get(name), whole) for name in dict.fromkeys([*ours, *theirs])
    ]
    return tuple(
        sorted(
            (one for one in found if one.us or one.against_us),
            key=lambda one: (-abs(one.change_us), one.name),
        )
    )


def _change(
    name: str, ours: FunctionTime | None, theirs: FunctionTime | None, whole: float
) -> FunctionChange:
    us, against_us = (side.own_us if side else 0.0 for side in (ours, theirs))
    half = math.hypot(*(side.half_us if side else 0.0 for side in (ours, theirs)))
    return FunctionChange(
        name=name,
        us=us,
        against_us=against_us,
        change_us=us - against_us,
        half_us=half,
        share=(us - against_us) / whole if whole else None,
    )


def _by_name(times: Sequence[FunctionTime]) -> Mapping[str, FunctionTime]:
    return {time.name: time for time in times}
