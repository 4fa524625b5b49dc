"""Where the time of a request goes, in words."""

from __future__ import annotations

import pytest

from dbdyno.analyse.found import Estimate, RequestPart, RequestTimes
from dbdyno.findings import request
from dbdyno.findings.request import PARTS, WHOLE


def estimate(name: str, mean: float, half: float | None) -> Estimate:
    if half is None:
        return Estimate(name=name, mean=mean, trials=1)
    return Estimate(name=name, mean=mean, low=mean - half, high=mean + half, trials=6)


def times(
    variant: str,
    parts: tuple[float, float, float],
    more: tuple[float, float, float] | None = None,
    half: float | None = 10.0,
    errors: float = 0.0,
) -> RequestTimes:
    """Of application, database and waiting, in microseconds."""
    names = (WHOLE, *PARTS)
    means = (sum(parts), *parts)
    changes = None if more is None else (sum(more), *more)
    whole, *others = (
        RequestPart(
            us=estimate(name, mean, half),
            more_us=None if changes is None else estimate(name, changes[place], half),
        )
        for place, (name, mean) in enumerate(zip(names, means, strict=True))
    )
    return RequestTimes(
        variant=variant, trials=6, requests_per_op=1.5, errors_per_op=errors, whole=whole, parts=tuple(others)
    )


BASELINE = times("baseline", (7_500.0, 1_500.0, 1_000.0))


def test_the_shares_are_told_and_what_the_database_could_gain() -> None:
    assert request.title([BASELINE]) == (
        "baseline: an operation takes 10,000 us; of these the database 15 %, the application 75 %, "
        "waiting 10 %. With a database that took no time, its workers would do ×1.20 as much."
    )


def test_a_database_that_got_faster_explains_what_the_request_gained() -> None:
    faster = times("fast", (7_500.0, 1_050.0, 1_000.0), (2.0, -450.0, 5.0))
    assert request.changes([BASELINE, faster]) == [
        "fast: the database takes 30 % ±0.7 less, 4.5 % of an operation; no change of the application and of "
        "waiting is told; in all an operation takes 4.4 % ±0.1 less."
    ]


@pytest.mark.parametrize(("half", "more"), [(None, -450.0), (500.0, -450.0)])
def test_a_change_that_could_be_chance_is_not_told(half: float | None, more: float) -> None:
    other = times("other", (7_500.0, 1_050.0, 1_000.0), (0.0, more, 0.0), half)
    [line] = request.changes([BASELINE, other])
    assert line == "other: no change of the whole is told."


def test_the_note_tells_of_requests_and_of_what_failed() -> None:
    assert "Requests per operation: 1.5." in request.note([BASELINE])
    assert "failed" not in request.note([BASELINE])
    assert "Requests that failed" in request.note([times("baseline", (1.0, 1.0, 1.0), errors=0.01)])
    assert "x: the workers were busy for longer" in request.note([times("x", (9.0, 3.0, -1.0))])
