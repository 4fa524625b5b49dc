"""From samples to what happened in the measured part: pure arithmetic on running totals."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dbdyno.trial.observe.processes import Counters


@dataclass(frozen=True)
class Totals:
    """Running totals at one moment."""

    unix_s: float
    counters: Counters


GAUGES = frozenset({"resident_bytes"})
"""Values at a moment; all other names are running totals."""


Windows = Sequence[tuple[float, float]]
"""Stretches of the measured part, from and to (unix time, seconds), in their order."""


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
    at_end = _first_at_or_after(samples, end_s)
    return {
        name: max(0.0, at_end.counters.get(name, 0.0) - _interpolated(samples, name, start_s))
        for name in at_end.counters
        if name not in GAUGES
    }


def gauge(samples: list[Totals], name: str, start_s: float, end_s: float) -> list[float]:
    """A gauge's values from the sample before the start to the one after the end."""
    first = max(0, bisect_right([sample.unix_s for sample in samples], start_s) - 1)
    last = samples.index(_first_at_or_after(samples, end_s))
    return [sample.counters[name] for sample in samples[first : last + 1] if name in sample.counters]


def per_second(samples: list[Totals], names: list[str], windows: Windows) -> dict[str, list[float]]:
    """Each name's gain in each whole second of the measured part; a gauge's value at the second's end.

    What lies between two windows is no part of any second.
    """
    seconds = range(int(sum(end_s - start_s for start_s, end_s in windows) + 1e-6) + 1)
    series: dict[str, list[float]] = {}
    for name in names:
        if name in GAUGES:
            moments = [_until(windows, second)[-1][1] for second in seconds[1:]]
            series[name] = [_interpolated(samples, name, moment_s) for moment_s in moments]
        else:
            values = [_gained(samples, name, _until(windows, second)) for second in seconds]
            series[name] = [round(after - before, 6) for before, after in pairwise(values)]
    return series


def _until(windows: Windows, measured_s: float) -> list[tuple[float, float]]:
    """The windows up to the moment at which so much had been measured."""
    found: list[tuple[float, float]] = []
    for start_s, end_s in windows:
        if measured_s <= 0:
            break
        found.append((start_s, min(end_s, start_s + measured_s)))
        measured_s -= end_s - start_s
    return found


def _gained(samples: list[Totals], name: str, windows: Windows) -> float:
    return sum(
        _interpolated(samples, name, end_s) - _interpolated(samples, name, start_s)
        for start_s, end_s in windows
    )


def _interpolated(samples: list[Totals], name: str, moment_s: float) -> float:
    following = bisect_right([sample.unix_s for sample in samples], moment_s)
    if following == 0:
        return samples[0].counters.get(name, 0.0)
    if following == len(samples):
        return samples[-1].counters.get(name, 0.0)
    before, after = samples[following - 1], samples[following]
    share = (moment_s - before.unix_s) / (after.unix_s - before.unix_s)
    low, high = before.counters.get(name, 0.0), after.counters.get(name, 0.0)
    return low + share * (high - low)


def _first_at_or_after(samples: list[Totals], moment_s: float) -> Totals:
    return next((sample for sample in samples if sample.unix_s >= moment_s), samples[-1])
