"""Numbers are written to the precision that they deserve."""

from __future__ import annotations

import pytest

from dbdyno.analyse.model import Ratio
from dbdyno.report.words import numbers


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
