"""The split of a request's time: what the workers told, and what is left of the client's time."""

from __future__ import annotations

import math

import pytest

from dbdyno.analyse.found import RequestTimes
from dbdyno.findings import analyse
from dbdyno.findings.request import APPLICATION, DATABASE, WAITING, request_times
from dbdyno.records.record import Outcome, Record
from tests.analyse.factory import OPEN_LOOP, a_run, a_study, changed, counted, ended, records_of
from tests.fakes import make_tally

STUDY = a_study(blocks=3)
BASELINE, CANDIDATE = (
    [record for record in records_of(STUDY) if record.variant == name]
    for name in ("baseline", "config.page_cache=64k")
)
SERVER = {"server_cpu_user_s": 4.0, "server_cpu_system_s": 1.0}


def told(record: Record, busy_s: float, database_s: float, **tally: object) -> Record:
    """A trial of 1,000 operations and 1,500 requests in 10 s by 4 clients: 40 ms per client and operation."""
    assert record.observation is not None
    totals = SERVER | {
        "application_requests": 1_500.0,
        "application_busy_s": busy_s,
        "application_database_s": database_s,
    }
    seen = record.observation.but(totals=totals, duration_s=10.0)
    latency = make_tally().latency_us.but(mean=39_900.0)
    given = {
        "operations": 1_000, "duration_s": 10.0, "clients": 4, "open_loop": None, "latency_us": latency,
        "driver_cpu_s": {"user": 0.1, "system": 0.0}, "errors": {},
    }  # fmt: skip
    return counted(changed(record, observation=seen), **{**given, **tally})


def means(times: RequestTimes) -> dict[str, float]:
    return {part.us.name: part.us.mean for part in times.parts}


def of(*records: Record) -> tuple[RequestTimes, ...]:
    return request_times(records, "baseline", 0.95)


def test_the_parts_are_what_the_workers_told_and_what_is_left() -> None:
    [one] = of(told(BASELINE[0], 30.0, 12.0))
    assert means(one) == pytest.approx({APPLICATION: 18_000.0, DATABASE: 12_000.0, WAITING: 10_000.0})
    assert one.whole.us.mean == pytest.approx(40_000.0)
    assert (one.requests_per_op, one.errors_per_op, one.whole.more_us) == (1.5, 0.0, None)


def test_in_open_loop_the_whole_is_the_mean_latency() -> None:
    [one] = of(told(BASELINE[0], 30.0, 12.0, open_loop=OPEN_LOOP))
    assert one.whole.us.mean == pytest.approx(39_900.0)


def test_the_pauses_of_a_client_are_no_part_of_its_request() -> None:
    latency = make_tally().latency_us.but(mean=31_900.0)
    [one] = of(told(BASELINE[0], 30.0, 12.0, latency_us=latency))
    assert one.whole.us.mean == pytest.approx(32_000.0)
    assert means(one)[WAITING] == pytest.approx(2_000.0)


def test_a_change_is_that_of_the_same_block() -> None:
    """Blocks differ by far more than the variants, and each pair by 2 ms of the database's part."""
    slow = [told(record, 20.0 + 5 * block, 10.0 + 5 * block) for block, record in enumerate(BASELINE)]
    fast = [told(record, 18.0 + 5 * block, 8.0 + 5 * block) for block, record in enumerate(CANDIDATE)]
    baseline, candidate = of(*slow, *fast[::-1])
    assert all(part.more_us is None for part in baseline.parts)
    more = {part.us.name: part.more_us for part in candidate.parts if part.more_us is not None}
    assert more[DATABASE].mean == pytest.approx(-2_000.0)
    assert more[DATABASE].high == pytest.approx(-2_000.0)
    assert more[APPLICATION].mean == pytest.approx(0.0, abs=1e-6)
    assert candidate.whole.more_us is not None
    summed = math.fsum(part.mean for part in more.values())
    assert candidate.whole.more_us.mean == pytest.approx(summed)


def test_a_block_without_the_baseline_says_nothing_of_a_change() -> None:
    slow = [told(BASELINE[0], 30.0, 12.0)]
    _, candidate = of(*slow, *(told(record, 25.0, 7.0) for record in CANDIDATE))
    assert candidate.trials == 3
    assert candidate.whole.more_us is not None and candidate.whole.more_us.trials == 1
    [alone] = of(told(CANDIDATE[0], 25.0, 7.0))
    assert alone.whole.more_us is None


def test_only_measured_trials_whose_workers_told_count() -> None:
    failed = ended(Outcome.FAILED, "the application died under the load")(told(BASELINE[1], 1.0, 1.0))
    [one] = of(told(BASELINE[0], 30.0, 12.0), failed, BASELINE[2])
    assert one.trials == 1
    assert of(*BASELINE) == ()


def test_a_run_without_an_application_has_no_such_split() -> None:
    analysis = analyse(STUDY, a_run(STUDY), [*BASELINE, *CANDIDATE])
    assert analysis.requests == () and "requests" not in analysis.model_dump()


def test_errors_are_told_beside_the_operations() -> None:
    [one] = of(told(BASELINE[0], 30.0, 12.0, errors={"500 Internal Server Error": 20}))
    assert one.errors_per_op == pytest.approx(0.02)
