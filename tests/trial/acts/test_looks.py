"""Which of the commits that clients were told of a look at another node has missed."""

from __future__ import annotations

from dbdyno.trial.acts.ledger import Entry
from dbdyno.trial.acts.looks import Look, Staleness, staleness

MS = 1_000_000
TOLD = [Entry(0, 1, 10 * MS), Entry(0, 2, 20 * MS), Entry(1, 1, 15 * MS)]


def test_a_look_that_shows_what_each_client_was_told_of_is_not_stale() -> None:
    assert staleness([Look(2, 30 * MS, {0: 2, 1: 1})], TOLD, [1]) == Staleness(2, 0, 0.0)


def test_a_look_on_the_node_of_a_client_says_nothing_of_that_client() -> None:
    assert staleness([Look(2, 24 * MS, {0: 1, 1: 0})], TOLD, [1, 2]) == Staleness(1, 1, 4.0)
    assert staleness([Look(1, 24 * MS, {0: 1, 1: 0})], TOLD, [1, 2]) == Staleness(1, 1, 9.0)


def test_a_commit_that_comes_after_the_look_is_not_missed() -> None:
    assert staleness([Look(2, 17 * MS, {0: 1, 1: 1})], TOLD, [1]) == Staleness(2, 0, 0.0)
    assert staleness([Look(2, 12 * MS, {0: 1})], TOLD, [1]) == Staleness(1, 0, 0.0)


def test_a_missed_commit_is_as_old_as_the_client_has_known_of_it() -> None:
    assert staleness([Look(2, 24 * MS, {0: 1, 1: 1})], TOLD, [1]) == Staleness(2, 1, 4.0)
    assert staleness([Look(2, 24 * MS, {})], TOLD, [1]) == Staleness(2, 2, 14.0)
