"""While a block is measured, whoever asks is answered with what is there, and nothing is drawn."""

from __future__ import annotations

import pytest

from dbdyno.host.host_lock import alone, undisturbed
from tests.cli.trend_cases import keep
from tests.serve.served import serving, until

pytestmark = pytest.mark.usefixtures("homes")


def test_a_page_that_is_drawn_already_is_shown_as_it_was() -> None:
    keep("before")
    with serving() as served:
        drawn = served.visitor.ask("/").body
        with undisturbed():
            keep("meanwhile")
            for _ in range(3):
                assert served.visitor.ask("/").body == drawn
        until(served.visitor, "/", "/run/meanwhile")


def test_a_page_that_nobody_asked_for_before_waits_for_the_end_of_the_block() -> None:
    keep("one")
    with serving() as served:
        with undisturbed():
            answer = served.visitor.ask("/run/one")
            assert (answer.status, answer.headers["retry-after"]) == (503, "10")
            assert (
                "A block is being measured" in answer.body
                and "(gives up durability) helped" not in answer.body
            )
        assert "(gives up durability) helped" in until(
            served.visitor, "/run/one", "(gives up durability) helped"
        )


def test_who_waits_for_a_page_is_told_who_measures_and_what_is_there() -> None:
    keep("one")
    with serving() as served:
        served.visitor.ask("/")
        with alone('Which "<flush>"?', 600.0, run="run-of-another-store"), undisturbed():
            told = served.visitor.ask("/run/one").body
            assert "Which &quot;&lt;flush&gt;&quot;?" in told and "about 10 min left" in told
            assert "<b>run-of-another-store</b>" in told and "<a href='/'>" in told
            assert "one" in served.visitor.ask("/").body, "a page that was drawn is kept"


def test_what_was_asked_for_during_a_block_is_drawn_after_it() -> None:
    keep("one")
    with serving() as served:
        served.visitor.ask("/")
        with undisturbed():
            events = served.visitor.connection("/events?page=/run/one&shown=").getresponse()
            assert events.readline() == b": following\n"
            served.visitor.ask("/run/one")
        told = [events.readline() for _ in range(3)]
    assert b"event: drawn\n" in told
