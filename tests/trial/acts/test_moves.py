"""How long a node stood still, by what it told from moment to moment."""

from __future__ import annotations

from dbdyno.trial.acts.moves import longest_still_s


def test_a_node_stands_still_between_two_moves() -> None:
    assert longest_still_s([(0.0, 5.0), (1.0, 6.0), (2.0, 6.0), (4.0, 6.0), (5.0, 7.0), (5.5, 8.0)]) == 4.0


def test_a_node_that_never_moves_stands_still_for_as_long_as_it_was_asked() -> None:
    assert longest_still_s([(1.0, 5.0), (2.0, 5.0), (4.5, 5.0)]) == 3.5
    assert longest_still_s([(1.0, 5.0)]) == longest_still_s([]) == 0.0
