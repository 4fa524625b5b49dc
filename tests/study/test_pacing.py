"""Rate schedules and think times: what is written, and what the driver's job has for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

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
        ("file:a,b.csv", pacing.RateFile("a,b.csv")),
        ("file:../a b.csv, over 1.5m, x0.1", pacing.RateFile("../a b.csv", over_s=90.0, factor=0.1)),
        ("file:a.csv,x2,over 10 s", pacing.RateFile("a.csv", over_s=10.0, factor=2.0)),
    ],
)
def test_a_schedule_is_read(text: str, meant: Schedule | pacing.RateFile) -> None:
    assert pacing.schedule_form(text) == meant
    assert re.fullmatch(pacing.SCHEDULE, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("slope:3/4s", "no schedule"),
        ("file:", "names no file"),
        ("file: ,over 3s", "names no file"),
        ("file:a.csv,over 60", '"60" is no duration'),
        ("file:a.csv,over 0s", "scales to nothing"),
        ("file:a.csv,x0", "scales to nothing"),
        ("file:a.csv,x2,over 1s,x3", "says the same twice"),
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
        pacing.schedule_form(text)
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
    assert pacing.schedule_form("steps:10=5,1m=9", pacing.seconds) == RateSteps(
        steps=((10.0, 5.0), (60.0, 9.0))
    )


def test_a_rate_or_a_schedule_opens_the_loop() -> None:
    assert pacing.load(None, "poisson", None, 0.1) == Closed(think_time=0.1)
    assert pacing.load(5.0, "uniform", None, None) == Open(rate_per_s=5.0, arrivals="uniform")
    assert pacing.load(None, "poisson", POINTS, None) == Open(schedule=POINTS)


RAMP, SINE, POINTS = (pacing.schedule(text, Path()) for text in ("ramp:9/1s", "sine:9/1s", "points:0s=9"))


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


TIMES = st.lists(st.integers(0, 86_399), min_size=1, max_size=20, unique=True).map(sorted)
RATES = st.integers(0, 100_000)


def clock(at_s: int) -> str:
    return f"{at_s // 3600:02}:{at_s // 60 % 60:02}:{at_s % 60:02}"


def stamp(at_s: int) -> str:
    return f"2026-05-04T{clock(at_s)}Z"


@given(st.data(), TIMES, st.sampled_from([str, clock, stamp]), st.sampled_from([",", ";", "\t", " "]))
def test_a_file_of_points_is_the_schedule_of_the_same_points(
    data: st.DataObject, times: list[int], form: Callable[[int], str], separator: str
) -> None:
    rates = data.draw(st.lists(RATES, min_size=len(times), max_size=len(times)).filter(any))
    header = data.draw(st.sampled_from(["", f"time{separator}rate\n", "# of monday\n\n"]))
    begun = 0 if form is str else times[0]
    written = ",".join(f"{at - begun}s={rate}" for at, rate in zip(times, rates, strict=True))
    lines = (f"{form(at)}{separator}{rate}\n" for at, rate in zip(times, rates, strict=True))
    with TemporaryDirectory() as folder:
        (Path(folder) / "shape.csv").write_text(header + "".join(lines))
        found = pacing.schedule("file:shape.csv", Path(folder))
        assert found == pacing.schedule(f"points:{written}", Path(folder))
        if len(times) > 1:
            scaled = pacing.schedule("file:shape.csv,over 60s,x0.5", Path(folder))
            assert isinstance(scaled, Points)
            span_s = times[-1] - times[0]
            assert scaled.points == tuple(
                ((at - times[0]) / span_s * 60, rate * 0.5) for at, rate in zip(times, rates, strict=True)
            )
            assert (scaled.points[0][0], scaled.points[-1][0]) == (0.0, 60.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "shape.csv has no point"),
        (b"time,rate\n", "shape.csv has no point"),
        (b"time,rate\nsoon,5\n", 'line 2: "soon" is no time'),
        (b"time,rate\n1,fast\n", 'line 2: "fast" is no rate'),
        (b"1,1_000\n", 'line 1: "1_000" is no rate'),
        (b"1,nan\n", 'line 1: "nan" is no rate'),
        (b"time,rate\nat,rate\n", 'line 2: "at" is no time'),
        (b"0,5\n\n9,5\n8,5\n", 'line 4: the time "8" goes back'),
        (b"23:59,5\n00:01,5\n", 'line 2: the time "00:01" goes back'),
        (b"0,5\n00:01,5\n", 'line 2: "00:01" is no number of seconds'),
        (b"2026-05-04T00:00Z,5\n2026-05-04T00:01,5\n", "is no stamp with a time zone"),
        (b"0,5\n1,-5\n", "line 2: the rate -5 is below 0"),
        (b"-2,-5\n", "line 1: the time -2 is below 0"),
        (b"0,5\n1,20000000\n", "line 2: the rate cannot be 20000000"),
        (b"0,5,9\n", 'line 1: "0,5,9" has 3 columns'),
        (b"0\n", 'line 1: "0" has one column'),
        (b"0,0\n1,0\n", "shape.csv is never above 0"),
        (b"1700000000,5\n", "beyond 30 days"),
        (b"\xff\xfe0,5", "shape.csv is no text in UTF-8"),
        (
            b"".join(b"%d,5\n" % at for at in range(100_001)),
            "line 100001: there are more than 100,000 points",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_a_wrong_file_says_where_it_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "shape.csv").write_bytes(content)
    with pytest.raises(ValueFault) as caught:
        pacing.schedule("file:shape.csv", tmp_path)
    assert said in caught.value.message
    assert "shape.csv" in caught.value.message
    assert caught.value.hint


def test_a_file_of_one_time_cannot_be_scaled_and_one_of_another_epoch_can(tmp_path: Path) -> None:
    (tmp_path / "shape.csv").write_text("1700000000,5\n")
    with pytest.raises(ValueFault, match="takes no time"):
        pacing.schedule("file:shape.csv,over 1m", tmp_path)
    (tmp_path / "shape.csv").write_text("1700000000,5\n1700086400,7\n")
    assert pacing.schedule("file:shape.csv,over 1m", tmp_path) == Points(points=((0.0, 5.0), (60.0, 7.0)))


@given(st.text(alphabet="rampsteinocfl:/=,.0123456789 -", max_size=20))
@example("0s ")
@example("file: a,x2")
@example("exponential: 1s")
@example("ramp: 5 /3s")
@example("steps:1s= 5, 2s=6 ")
def test_what_is_read_matches_the_pattern_for_editors(text: str) -> None:
    for read, pattern in ((pacing.schedule_form, pacing.SCHEDULE), (pacing.think_time, pacing.THINK_TIME)):
        try:
            read(text)
        except ValueFault:
            continue
        assert re.search(pattern, text)
