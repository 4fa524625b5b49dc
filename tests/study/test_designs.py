"""Fractions of a two-level factorial: what the tables promise, computed from the setups themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dbdyno.study import designs

ALL = sorted(designs.GENERATORS)
PUBLISHED = {5: 5, 6: 6, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4, 12: 4}
"""Resolutions in Box, Hunter and Hunter's and in Montgomery's tables, by the number of factors."""


@pytest.mark.parametrize("factors", ALL)
def test_the_resolution_is_the_published_one(factors: int) -> None:
    assert designs.resolution(factors) == PUBLISHED[factors]


@pytest.mark.parametrize("factors", ALL)
def test_setups_differ_and_are_balanced_and_begin_with_the_baseline(factors: int) -> None:
    rows = designs.fraction(factors)
    assert rows[0] == (-1,) * factors
    assert len(set(rows)) == len(rows) == (16 if factors == 5 else 32)
    assert np.array(rows).sum(axis=0).tolist() == [0] * factors
    assert (1,) * factors in designs.points(factors)


@pytest.mark.parametrize("factors", ALL)
def test_factors_are_clear_of_each_other_and_of_interactions_of_two(factors: int) -> None:
    rows = np.array(designs.fraction(factors))
    pairs = [rows[:, i] * rows[:, j] for i, j in itertools.combinations(range(factors), 2)]
    assert np.array_equal(rows.T @ rows, len(rows) * np.eye(factors, dtype=int))
    assert not (rows.T @ np.array(pairs).T).any()


@pytest.mark.parametrize("factors", ALL)
def test_what_is_together_is_one_column_up_to_its_sign_and_nothing_else_is(factors: int) -> None:
    rows = np.array(designs.fraction(factors))
    groups = designs.together(factors)
    told = sorted(one for group in groups for one in group.interactions)
    assert told == list(itertools.combinations(range(factors), 2))
    firsts = []
    for group in groups:
        columns = [
            sign * rows[:, i] * rows[:, j]
            for (i, j), sign in zip(group.interactions, group.signs, strict=True)
        ]
        assert all(np.array_equal(columns[0], column) for column in columns)
        firsts.append(columns[0])
    products = np.array(firsts) @ np.array(firsts).T
    assert np.array_equal(products, len(rows) * np.eye(len(groups), dtype=int))


@pytest.mark.parametrize("factors", ALL)
def test_a_share_names_every_interaction_of_three_that_it_holds(factors: int) -> None:
    rows = np.array(designs.fraction(factors))
    for index in range(factors):
        held = {}
        for three in itertools.combinations(range(factors), 3):
            agreement = int(rows[:, list(three)].prod(axis=1) @ rows[:, index])
            if agreement:
                held[three] = agreement // len(rows)
        named = designs.within(factors, index)
        assert held == (dict(zip(named.interactions, named.signs, strict=True)) if named else {})


def test_the_text_is_the_textbooks() -> None:
    lines = designs.description(7)
    assert "32 of 128 variants, resolution IV" in lines[0]
    assert [line.strip() for line in lines if "×" in line] == ["C×E + F×G", "C×F + E×G", "C×G + E×F"]
