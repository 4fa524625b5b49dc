"""Which of the commits that clients were told of a look at another node has missed."""

from __future__ import annotations

from dbdyno.trial.acts.ledger import Entry
from dbdyno.trial.acts.looks import Look, Staleness, staleness

MS = 1_000_000
TOLD = [Entry(0, 1, 10 * MS), Entry(0, 2, 20 * MS), Entry(1, 1, 15 * MS)]


def test_a_look_that_shows_what_each_client_was_told_of_is_not_stale() -> None:
    assert staleness([Look(30 * MS, {0: 2, 1: 1})], TOLD) == Staleness(2, 0, 0.0)


def test_a_commit_that_comes_after_the_look_is_not_missed() -> None:
    assert staleness([Look(17 * MS, {0: 1, 1: 1})], TOLD) == Staleness(2, 0, 0.0)
    assert staleness([Look(12 * MS, {0: 1})], TOLD) == Staleness(1, 0, 0.0)


def test_a_missed_commit_is_as_old_as_the_client_has_known_of_it() -> None:
    assert staleness([Look(24 * MS, {0: 1, 1: 1})], TOLD) == Staleness(2, 1, 4.0)
    assert staleness([Look(24 * MS, {})], TOLD) == Staleness(2, 2, 14.0)
