"""Where the time of an operation goes, in words."""

from __future__ import annotations

import pytest

from dbdyno.analyse.found import Estimate, TimeSplit
from dbdyno.findings import split


def estimate(name: str, mean: float, half: float | None) -> Estimate:
    if half is None:
        return Estimate(name=name, mean=mean, trials=1)
    return Estimate(name=name, mean=mean, low=mean - half, high=mean + half, trials=6)


@pytest.mark.parametrize(
    ("half", "said"),
    [
        (5.0, "The largest part is server, user: 60 %."),
        (15.0, "The data cannot say which part is larger: server, user (60 %) or the rest (40 %)."),
        (None, "The data cannot say which part is larger: server, user (60 %) or the rest (40 %)."),
    ],
)
def test_the_largest_part_is_named_where_it_is_told_from_the_next(half: float | None, said: str) -> None:
    parts = (estimate("remainder", 40.0, half), estimate("server_user", 60.0, half))
    one = TimeSplit(variant="baseline", trials=6, whole=estimate("whole", 100.0, half), parts=parts)
    assert split.title([one]) == f"baseline takes 100.0 us per operation. {said}"
