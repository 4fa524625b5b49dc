"""Rate schedules and think times: what is written, and what the driver's job has for it."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dbdyno.driver.job import Closed, Constant, Open, Points, Ramp, RateSteps, Schedule, Sine, ThinkTime
from dbdyno.study import pacing
from dbdyno.study.values import ValueFault


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("constant", Constant()),
        ("ramp:2000/30s", Ramp(to_per_s=2000.0, over_s=30.0)),
        ("sine:50.5/1.5m", Sine(amplitude_per_s=50.5, period_s=90.0)),
        ("steps:10s=500,20 s=900", RateSteps(steps=((10.0, 500.0), (20.0, 900.0)))),
        ("points:0s=0,500ms=9", Points(points=((0.0, 0.0), (0.5, 9.0)))),
    ],
)
def test_a_schedule_is_read(text: str, meant: Schedule) -> None:
    assert pacing.schedule(text) == meant
    assert re.fullmatch(pacing.SCHEDULE, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("slope:3/4s", "no schedule"),
        ("file:/x", "no schedule"),
        ("ramp:2000", "no `/`"),
        ("ramp:/3s", '"" in "ramp:/3s" is no rate'),
        ("ramp:-1/3s", "is no rate"),
        ("ramp:2000/30", '"30" is no duration'),
        ("ramp:2000/0s", "takes no time"),
        ("sine:fast/3s", "is no rate"),
        ("steps:", "no AT=RATE"),
        ("steps:1s=2,", "no AT=RATE"),
        ("steps:1s=2e9", "is no rate"),
        ("steps:1s=99999999999", "cannot be 99999999999.0"),
        ("steps:2s=1,1s=2", "go back"),
        ("points:0s=0,3s=0", "never above 0"),
        ("ramp:1000000000000/3s", "cannot be 1000000000000.0"),
        ("points:0s=1,3s=10000001", "cannot be 10000001.0"),
        ("sine:1/0.001ms", "waves faster than the driver can follow"),
    ],
)
def test_a_wrong_schedule_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ValueFault) as caught:
        pacing.schedule(text)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_think_time_is_read() -> None:
    assert pacing.think_time("100ms") == 0.1
    assert pacing.think_time("exponential:2s") == ThinkTime(mean_s=2.0, distribution="exponential")
    for wrong in ("0.1", "gamma:1s", "exponential:", "-1s", 0.1):
        with pytest.raises(ValueFault):
            pacing.think_time(wrong)


def test_the_command_line_takes_seconds_without_a_unit() -> None:
    assert pacing.think_time("0.25", pacing.seconds) == 0.25
    assert pacing.schedule("steps:10=5,1m=9", pacing.seconds) == RateSteps(steps=((10.0, 5.0), (60.0, 9.0)))


def test_a_rate_or_a_schedule_opens_the_loop() -> None:
    assert pacing.load(None, "poisson", None, 0.1) == Closed(think_time=0.1)
    assert pacing.load(5.0, "uniform", None, None) == Open(rate_per_s=5.0, arrivals="uniform")
    assert pacing.load(None, "poisson", POINTS, None) == Open(schedule=POINTS)


RAMP, SINE, POINTS = (pacing.schedule(text) for text in ("ramp:9/1s", "sine:9/1s", "points:0s=9"))


@pytest.mark.parametrize(
    ("schedules", "rates", "arrivals", "think_time", "blamed"),
    [
        ([], [], False, False, None),
        ([], [], False, True, None),
        ([], [5.0], True, False, None),
        ([RAMP], [5.0], True, False, None),
        ([POINTS], [], True, False, None),
        ([RAMP, POINTS], [5.0], False, False, None),
        ([SINE], [9.0], False, False, None),
        ([], [5.0], False, True, "think_time"),
        ([POINTS], [], False, True, "think_time"),
        ([RAMP], [], False, False, "schedule"),
        ([RAMP, POINTS], [], False, False, "schedule"),
        ([POINTS], [5.0], False, False, "schedule"),
        ([SINE], [9.0, 8.0], False, False, "schedule"),
        ([SINE], [9_999_999.0], False, False, "schedule"),
        ([], [], True, False, "arrivals"),
    ],
)
def test_what_does_not_go_together(
    schedules: list[Schedule],
    rates: list[float],
    arrivals: bool,
    think_time: bool,
    blamed: str | None,
) -> None:
    found = pacing.clash(schedules, rates, arrivals=arrivals, think_time=think_time, rate_key="--rate")
    assert (found[0] if found else None) == blamed
    assert found is None or (found[1].message and found[1].hint)


@given(st.text(alphabet="rampsteinoc:/=,.0123456789 -", max_size=20))
@example("0s ")
@example("exponential: 1s")
@example("ramp: 5 /3s")
@example("steps:1s= 5, 2s=6 ")
def test_what_is_read_matches_the_pattern_for_editors(text: str) -> None:
    for read, pattern in ((pacing.schedule, pacing.SCHEDULE), (pacing.think_time, pacing.THINK_TIME)):
        try:
            read(text)
        except ValueFault:
            continue
        assert re.search(pattern, text)
