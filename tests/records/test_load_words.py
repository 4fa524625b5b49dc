"""What is said of a load, and when nothing is."""

from __future__ import annotations

import pytest

from dbdyno.records.load_words import by_kind, came_to, driver_lagged, waited_for_cpu
from tests.fakes import make_tally
from tests.report.words.replay_cases import REPLAY


@pytest.mark.parametrize(("late", "doubted"), [(0, False), (10, False), (11, True)])
def test_a_driver_that_is_late_for_more_than_one_in_a_hundred_is_doubted(late: int, doubted: bool) -> None:
    assert bool(driver_lagged(REPLAY.but(late_by_driver=late))) is doubted


def test_the_most_frequent_error_comes_first() -> None:
    assert by_kind({"1213 deadlock": 2, "1205 timeout": 7}) == "1205 timeout (7), 1213 deadlock (2)"


def test_a_load_without_any_answer_says_so() -> None:
    unanswered = make_tally().but(operations=0, unfinished=3, errors={"lost": 1})
    assert came_to(unanswered) == (
        "0 transactions succeeded, and 3 had no answer when the load was over; errors: lost (1)"
    )


def test_each_kind_of_error_is_told_with_what_its_first_one_said() -> None:
    tally = make_tally(
        operations=3, errors={"user": 7, "lost": 1}, error_examples={"user": "shop.sql:2: expected one row"}
    )
    assert came_to(tally) == (
        "3 transactions succeeded; errors: user (7): shop.sql:2: expected one row; lost (1)"
    )


def test_a_password_in_an_error_is_kept_nowhere() -> None:
    said = "cannot open mysql://me:secret@db/shop"
    tally = make_tally(errors={"connect": 1}, error_examples={"connect": said})
    assert "secret" not in tally.model_dump_json()


def test_what_was_tried_again_did_not_fail() -> None:
    tally = make_tally(operations=98, errors={"1213 deadlock": 5}, retries=3)
    assert tally.failed_share == 0.02


@pytest.mark.parametrize(
    ("backend", "share", "said"), [("epoll", 0.5, True), ("epoll", 0.4, False), ("blocking", 0.9, False)]
)
def test_a_thread_that_waits_half_of_the_time_is_told(backend: str, share: float, said: bool) -> None:
    tally = make_tally().but(
        backend=backend, sched_batch=False, driver_run_wait_share=(0.1, share), driver_busy_share=(0.2, 0.3)
    )
    assert ("driver thread 1 was ready" in waited_for_cpu(tally)) is said
