"""What the benchmark of stalls expects: the same as asking every arrival for how long it waited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.stalls import Measured, Stall
from dbdyno.errors import UserError

MEASURED = Measured(100.0, 117.0)
IN_EVERY_PERIOD = [Stall(98.3 + turn * 1.7, 98.3 + turn * 1.7 + 0.137) for turn in range(14)]
AT_THE_END = [Stall(116.9, 117.1)]


def waits(stalls: list[Stall], arrivals: int = 170_000) -> list[float]:
    """How long each of evenly spread arrivals waits, the longest first."""
    step_s = (MEASURED.ended_s - MEASURED.began_s) / arrivals
    due = (MEASURED.began_s + (index + 0.5) * step_s for index in range(arrivals))
    found = [next((one.ended_s - at for one in stalls if one.began_s <= at < one.ended_s), 0.0) for at in due]
    return sorted(found, reverse=True)


@pytest.mark.parametrize("stalls", [IN_EVERY_PERIOD, AT_THE_END, [Stall(99.9, 100.1)], [Stall(90.0, 130.0)]])
def test_what_is_expected_is_what_every_arrival_would_tell(stalls: list[Stall]) -> None:
    told = waits(stalls)
    for share in (0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5):
        expected_s = MEASURED.expected_s(share, stalls)
        assert (expected_s or 0.0) == pytest.approx(told[int(share * len(told))], abs=2e-4)


def test_a_stall_beyond_the_end_counts_with_its_whole_length() -> None:
    assert MEASURED.expected_s(0.0, AT_THE_END) == pytest.approx(0.2)
    assert MEASURED.expected_s(0.01, AT_THE_END) is None, "one arrival in 170 waits"


@given(st.floats(90, 130), st.floats(0, 5), st.floats(0, 5), st.floats(0, 0.2))
def test_longer_waits_are_rarer(began_s: float, length_s: float, x_s: float, more_s: float) -> None:
    stall = Stall(began_s, began_s + length_s)
    waiting_s = MEASURED.waiting_s(stall, x_s)
    assert 0 <= MEASURED.waiting_s(stall, x_s + more_s) <= waiting_s <= length_s + 1e-9


def test_a_queue_is_served_beside_what_arrives_meanwhile() -> None:
    """200 wait after 0.2 s; 10,000/s are served and 1,000/s more arrive."""
    drained = Stall(100.0, 100.2).until_drained(arrivals_per_s=1000, served_per_s=10_000)
    assert drained.began_s == 100.0
    assert drained.ended_s == pytest.approx(100.2 + 200 / 9000)


def test_a_server_that_never_catches_up_has_no_bound() -> None:
    with pytest.raises(UserError, match=r"serves 800/s .* no more than the 1,000/s that arrive") as told:
        Stall(100.0, 100.2).until_drained(arrivals_per_s=1000, served_per_s=800)
    assert "--rate 400" in told.value.hint
