"""Numbers are written to the precision that they deserve."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dbdyno.analyse.model import Ratio
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import day_text, moment_text, second_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98234, "0.982"),
        (1.6238, "1.624"),
        (23.08, "23.1"),
        (1204.2, "1,204"),
        (0.0123, "0.012"),
        (0.1, "0.100"),
    ],
)
def test_ratios_have_the_digits_they_deserve(value: float, text: str) -> None:
    assert numbers.ratio_text(value) == text


def test_an_interval_beyond_all_measure_is_said_so() -> None:
    wild = Ratio(metric="m", pairs=2, ratio=1.0, low=1e-300, high=1e300, log_sd=9.0, confidence=0.95)
    assert numbers.interval_text(wild) == "<0.001 – >1,000"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.21, "0.21 s"), (43, "43 s"), (125, "2 min 5 s"), (7200, "2 h"), (4320, "1 h 12 min")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert numbers.seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(6.6, "7 s"), (75.2, "1 min 15 s"), (125, "2 min"), (5395, "1 h 30 min"), (11_105, "3 h 5 min")],
)
def test_estimated_durations_have_no_more_than_they_deserve(seconds: float, text: str) -> None:
    assert numbers.about_text(seconds) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (numbers.share_text(0.9949), "99.49 %"),
        (numbers.share_text(0.12345, digits=2), "12 %"),
        (numbers.share_text(0.9951, digits=2), "100 %"),
        (numbers.share_text(4.168, digits=2), "417 %"),
        (numbers.share_text(-123.4), "-12,340 %"),
        (numbers.part_text(1.0, 8.0), "12.5 %"),
        (numbers.part_text(1.0, 0.0), numbers.DASH),
        (numbers.change_text(-0.025), "-2.5 %"),
        (numbers.tenth_text(0.6234), "62.3 %"),
        (numbers.coarse_text(0.0034), "0.3 %"),
        (numbers.coarse_text(0.6234), "62 %"),
        (numbers.half_text(0.01), "<0.1"),
        (numbers.half_text(12.3), "12"),
        (numbers.hundredths_text(1.028), "102.8"),
        (numbers.hundredths_text(1e9), "∞"),
        (numbers.stage_seconds_text(1204.1), "1,204.10"),
    ],
)
def test_shares_and_seconds_are_written_in_one_place(written: str, text: str) -> None:
    assert written == text


LATE_S = 1_767_225_543.6
"""The last minute of a year in UTC, which is over in Auckland."""


@pytest.fixture(params=["UTC", "Pacific/Auckland"], autouse=True)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_moment_says_that_it_is_in_utc() -> None:
    assert moment_text(LATE_S) == "2025-12-31 23:59 UTC"
    assert second_text(LATE_S) == "2025-12-31 23:59:03 UTC"


def test_a_day_is_that_of_utc() -> None:
    assert day_text(LATE_S) == "2025-12-31"
