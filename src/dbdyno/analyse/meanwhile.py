"""What became of a load while something was done beside it, by variant: the dip, and
who waited for whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from statistics import median
from typing import Any

from dbdyno.analyse.restarts import Spread, spread_of_times
from dbdyno.frozen import Frozen, absent
from dbdyno.records.meanwhile import ActMeanwhile, Dip, LockWait, dip_of, seconds_done
from dbdyno.records.metrics import median_of
from dbdyno.records.record import Record


class ActTold(Frozen):
    """An act of a variant in its blocks. It took `took_s`, in `cut_short` of them at least that. A command's
    CPU time and bytes are medians."""

    name: str
    text: str
    at_s: float
    blocks: int
    took_s: Spread
    began_s: float
    cut_short: int = absent(0)
    cpu_s: float | None = absent(None)
    read_bytes: float | None = absent(None)
    written_bytes: float | None = absent(None)


class MeanwhileTold(Frozen):
    """A variant with what was done beside its load. Of its `blocks` so many showed a `dip`; `depth` and
    `lost_s` are of all, and the other figures too. Nothing smaller than `depth_seen` and `lost_seen_s` could
    be seen. `per_s` are medians over blocks of each whole second."""

    variant: str
    acts: tuple[ActTold, ...]
    blocks: int
    dips: int
    base_per_s: Spread
    base_spread: float
    base_seconds: int
    depth: Spread
    depth_seen: float
    length_s: Spread
    silent_s: Spread
    lost_s: Spread
    lost_seen_s: float
    full_speed_s: Spread | None = None
    not_back: int = absent(0)
    p99_ms_before: float | None = None
    p99_ms_within: Spread | None = None
    blocked: tuple[LockWait, ...] = absent(())
    looks: int = absent(0)
    every_s: float = absent(0.0)


class OverSeconds(Frozen):
    """The transactions of each whole second of a variant's measured part, the median of its blocks."""

    variant: str
    per_s: tuple[float, ...]


class MeanwhileFound(Frozen):
    """The variants beside whose load something was done, and the seconds of all."""

    variants: tuple[MeanwhileTold, ...]
    seconds: tuple[OverSeconds, ...]


def beside_loads(variant: str, records: Iterable[Record]) -> MeanwhileTold | None:
    """What the measured trials of a variant show; None where nothing was done beside them, or where no base
    is known."""
    phases = [phase for record in records if (phase := record.measured_phase) is not None and phase.meanwhile]
    dips = [dip for one in phases if one.tally and (dip := dip_of(one.tally, one.meanwhile)) is not None]
    found = _spreads(dips) if dips else None
    if found is None:
        return None
    return MeanwhileTold(
        variant=variant,
        acts=tuple(_acts([one.meanwhile for one in phases])),
        blocks=len(dips),
        dips=sum(one.is_seen for one in dips),
        base_spread=median(one.spread for one in dips),
        base_seconds=min(one.base_seconds for one in dips),
        depth_seen=median(one.depth_seen for one in dips),
        lost_seen_s=median(one.lost_seen_s for one in dips),
        not_back=sum(one.full_speed_s is None for one in dips),
        p99_ms_before=median_of(one.p99_ms_before for one in dips),
        blocked=_blocked(
            [act.blocked for one in phases for act in one.meanwhile],
            {act.name for one in phases for act in one.meanwhile},
        ),
        looks=sum(one.meanwhile[0].looks for one in phases),
        every_s=phases[0].meanwhile[0].every_s,
        **found,
    )


def seconds_of(variant: str, records: Iterable[Record]) -> OverSeconds | None:
    """None without a load that was counted by seconds."""
    each = [seconds_done(record.tally) for record in records if record.tally is not None]
    if not each:
        return None
    return OverSeconds(variant=variant, per_s=tuple(map(median, zip(*each, strict=False))))


OF_DIPS = ("base_per_s", "depth", "length_s", "silent_s", "lost_s", "full_speed_s", "p99_ms_within")


def _spreads(dips: Sequence[Dip]) -> dict[str, Any]:
    return {name: spread_of_times(getattr(one, name) for one in dips) for name in OF_DIPS}


def _acts(each: Sequence[Sequence[ActMeanwhile]]) -> Iterator[ActTold]:
    """The acts in their order, each over all blocks in which it began."""
    for name in dict.fromkeys(act.name for acts in each for act in acts):
        found = [act for acts in each for act in acts if act.name == name and act.began_s is not None]
        took_s = spread_of_times(act.took_s for act in found)
        if took_s is None:
            continue
        yield ActTold(
            name=name,
            text=found[0].text,
            at_s=found[0].at_s,
            blocks=len(found),
            took_s=took_s,
            began_s=median(act.began_s or 0.0 for act in found),
            cut_short=sum(not act.done for act in found),
            cpu_s=median_of(act.cpu_s for act in found),
            read_bytes=median_of(act.read_bytes for act in found),
            written_bytes=median_of(act.written_bytes for act in found),
        )


def _blocked(each: Iterable[Sequence[LockWait]], names: Set[str]) -> tuple[LockWait, ...]:
    """Who waited for whom in all blocks: first where one of the two is an act, then the most looks."""
    found: dict[tuple[str, str, str, bool], LockWait] = {}
    for one in (one for blocked in each for one in blocked):
        key = (one.waiter, one.blocker, one.lock, one.inferred)
        before = found.get(key)
        found[key] = one if before is None else one.but(
            looks=one.looks + before.looks, sessions=max(one.sessions, before.sessions)
        )  # fmt: skip
    return tuple(
        sorted(found.values(), key=lambda one: (names.isdisjoint((one.waiter, one.blocker)), -one.looks))
    )
