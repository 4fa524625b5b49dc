"""Rates that are told as one, and the knee of a curve."""

from __future__ import annotations

import math

import pytest

from benches.capacity import BLOCKS, Server, holds, searched, trials_of
from dbdyno.analyse.capacity import RateTold, broken_by, knee_per_s, rates_told
from dbdyno.records.capacity import TriedRate
from dbdyno.records.record import PhaseRecord
from tests.fakes import make_tally


def step(rate_per_s: float, *broke: str) -> PhaseRecord:
    tried = TriedRate(rate_per_s=rate_per_s, kept=not broke, broke=broke)
    return PhaseRecord(name="rate 1", tally=make_tally(), tried=tried)


def curve(bend_per_s: float, before: float, after: float) -> list[RateTold]:
    """Rates from 100 on whose percentile grows by these powers of the rate."""
    rates = [100.0 * 1.1**number for number in range(30)]
    return [
        RateTold(
            rate_per_s=rate,
            steps=1,
            kept=1,
            p99_ms=math.exp(
                before * math.log(rate) + (after - before) * max(0.0, math.log(rate / bend_per_s))
            ),
        )
        for rate in rates
    ]


def test_rates_that_hardly_differ_are_told_as_one() -> None:
    told = rates_told([step(100.0), step(500.0, "p99_ms"), step(101.0, "rate"), step(1000.0, "rate")])
    assert [(one.steps, one.kept) for one in told] == [(2, 1), (1, 0), (1, 0)]
    assert told[0].rate_per_s == pytest.approx(100.5, abs=0.01)
    assert (told[0].p50_ms, told[0].p99_ms) == (0.8, 2.5)
    # A thousand transactions leave one above the last percentile.
    assert told[0].p99_9_ms is None


def test_what_broke_is_counted_by_step() -> None:
    steps = [step(1.0), step(2.0, "p99_ms"), step(3.0, "p99_ms", "rate")]
    assert list(broken_by(steps).items()) == [("p99_ms", 2), ("rate", 1)]


@pytest.mark.parametrize("bend_per_s", [200.0, 500.0])
def test_the_knee_is_where_the_percentile_begins_to_grow_faster(bend_per_s: float) -> None:
    assert knee_per_s(curve(bend_per_s, 0.1, 6.0)) == pytest.approx(bend_per_s, rel=0.06)


def test_an_even_growth_and_few_rates_have_no_knee() -> None:
    assert knee_per_s(curve(300.0, 0.5, 0.5)) is None
    assert knee_per_s(curve(300.0, 3.0, 1.0)) is None
    assert knee_per_s(curve(110.0, 0.1, 6.0)[:5]) is None
    assert knee_per_s([one.but(p99_ms=None) for one in curve(300.0, 0.1, 6.0)]) is None


@pytest.mark.parametrize("server", [Server(0.3, 0.1, 0.0), Server(0.8, 0.05, 0.05)])
def test_intervals_over_blocks_hold_the_truth_as_often_as_they_say(server: Server) -> None:
    runs = 150
    found = trials_of(searched, server, BLOCKS * runs, 12, seed=1)
    held = sum(holds(found[at : at + BLOCKS]) for at in range(0, len(found), BLOCKS))
    # Of 150 intervals of 95 %, at least 135 hold in all but one of 1,000 such tests.
    assert held >= 135
    assert abs(sum(found) / len(found)) < 0.03
