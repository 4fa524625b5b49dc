"""From samples to what happened in the measured part: pure arithmetic on running totals."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.trial.observe.processes import Counters

ROUNDING_S = 1e-6
"""How much of each window rounding may take: its ends are unix times, which a float holds to a quarter of
this."""


@dataclass(frozen=True)
class Totals:
    """Running totals at one moment, in unix time that no setting of the clock moves."""

    unix_s: float
    counters: Counters


GAUGES = frozenset({"resident_bytes"})
"""Values at a moment; all other names are running totals."""


Windows = Sequence[tuple[float, float]]
"""Stretches of the measured part, from and to (unix time, seconds), in their order."""


def on_steady_time(windows: Windows, ahead: Sequence[tuple[float, float]]) -> Windows:
    """Windows as a clock tells them that nobody sets. Each begins by a wall clock, which was `ahead` of that
    by so much (s) from a moment on; the first moment is that of the first sample."""
    ends = [*(from_s for from_s, _ in ahead[1:]), math.inf]

    def steady(start_s: float) -> float:
        """By the reading that was possible when the clock stood like this, or is the nearest to it."""
        fits = (
            (max(from_s - found, found - end_s, 0.0), found)
            for (from_s, ahead_s), end_s in zip(ahead, ends, strict=True)
            for found in (start_s - ahead_s,)
        )
        return min(fits)[1]

    begun = [(steady(start_s), end_s - start_s) for start_s, end_s in windows]
    return tuple((start_s, start_s + takes_s) for start_s, takes_s in begun)


def gained_in(samples: list[Totals], windows: Windows) -> Counters:
    """What each running total gained in all windows together."""
    total: Counters = {}
    for start_s, end_s in windows:
        for name, value in differences(samples, start_s, end_s).items():
            total[name] = total.get(name, 0.0) + value
    return total


def differences(samples: list[Totals], start_s: float, end_s: float) -> Counters:
    """What each running total gained between two moments (unix time, seconds).

    At the start the load is steady on both sides, so the value is interpolated. At the end the load stops:
    what the sample after it shows was gained before it, so that sample counts in full.
    """
    at_end = samples[_at_or_after(samples, end_s)]
    return {
        name: max(0.0, at_end.counters.get(name, 0.0) - _interpolated(samples, name, start_s))
        for name in at_end.counters
        if name not in GAUGES
    }


def gauge(samples: list[Totals], name: str, start_s: float, end_s: float) -> list[float]:
    """A gauge's values from the sample before the start to the one after the end."""
    first = max(0, _after(samples, start_s) - 1)
    last = _at_or_after(samples, end_s)
    return [sample.counters[name] for sample in samples[first : last + 1] if name in sample.counters]


def per_second(samples: list[Totals], names: list[str], windows: Windows) -> dict[str, list[float]]:
    """Each name's gain in each whole second of the measured part; a gauge's value at the second's end.

    What lies between two windows is no part of any second.
    """
    seconds = _seconds(windows)
    series: dict[str, list[float]] = {}
    for name in names:
        if name in GAUGES:
            series[name] = [_interpolated(samples, name, second[-1][1]) for second in seconds]
        else:
            series[name] = [round(_gained(samples, name, second), 6) for second in seconds]
    return series


def _seconds(windows: Windows) -> Sequence[Windows]:
    """The stretches of the windows that make up each whole second of the measured part."""
    seconds: list[list[tuple[float, float]]] = []
    room_s, rounding_s = 0.0, ROUNDING_S * len(windows)
    for start_s, end_s in windows:
        while start_s < end_s:
            if room_s <= rounding_s:
                seconds.append([])
                room_s += 1.0
            until_s = min(end_s, start_s + room_s)
            seconds[-1].append((start_s, until_s))
            room_s -= until_s - start_s
            start_s = until_s
    return seconds[:-1] if room_s > rounding_s else seconds


def _gained(samples: list[Totals], name: str, windows: Windows) -> float:
    return sum(
        _interpolated(samples, name, end_s) - _interpolated(samples, name, start_s)
        for start_s, end_s in windows
    )


def _interpolated(samples: list[Totals], name: str, moment_s: float) -> float:
    following = _after(samples, moment_s)
    if following == 0:
        return samples[0].counters.get(name, 0.0)
    if following == len(samples):
        return samples[-1].counters.get(name, 0.0)
    before, after = samples[following - 1], samples[following]
    share = (moment_s - before.unix_s) / (after.unix_s - before.unix_s)
    low, high = before.counters.get(name, 0.0), after.counters.get(name, 0.0)
    return low + share * (high - low)


def _after(samples: list[Totals], moment_s: float) -> int:
    """Where the first sample after a moment stands; behind the last one where there is none."""
    return bisect_right(samples, moment_s, key=_unix_s)


def _at_or_after(samples: list[Totals], moment_s: float) -> int:
    """Where the first sample at a moment or after it stands; the last one where there is none."""
    return min(bisect_left(samples, moment_s, key=_unix_s), len(samples) - 1)


def _unix_s(sample: Totals) -> float:
    return sample.unix_s
