"""Counted instructions: changes by function add up to the change of the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.counted import changes, spread
from dbdyno.records.record import INSTRUCTIONS, Counted, CountedFunction


def counted(own: dict[str, float], repeats: tuple[float, ...] = ()) -> Counted:
    functions = tuple(
        CountedFunction(name=name, module="server", own={INSTRUCTIONS: value}, whole=value)
        for name, value in own.items()
    )
    return Counted(
        operations=1, per_op={INSTRUCTIONS: sum(own.values())}, repeats=repeats, functions=functions
    )


def test_the_largest_change_comes_first_and_what_stays_is_left_out() -> None:
    found = changes(
        counted({"parse": 50.0, "read": 30.0}), counted({"parse": 50.0, "read": 20.0, "lock": 90.0})
    )
    assert [(one.name, one.own, one.against, one.change) for one in found] == [
        ("lock", 0.0, 90.0, -90.0),
        ("read", 30.0, 20.0, 10.0),
    ]
    assert [one.share for one in found] == [pytest.approx(90 / 80), pytest.approx(-10 / 80)]


def test_without_a_change_of_the_whole_there_is_no_share() -> None:
    found = changes(counted({"a": 1.0, "b": 2.0}), counted({"a": 2.0, "b": 1.0}))
    assert [one.share for one in found] == [None, None]


def test_the_spread_is_of_the_repeats() -> None:
    assert spread(counted({}, (100.0, 101.0, 100.5))) == pytest.approx(0.01)
    assert spread(counted({})) == 0.0


owns = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000).map(float))


@given(owns, owns)
def test_changes_add_up_to_the_whole(ours: dict[str, float], theirs: dict[str, float]) -> None:
    found = changes(counted(ours), counted(theirs))
    assert sum(one.change for one in found) == sum(ours.values()) - sum(theirs.values())
    back = {one.name: one.change for one in changes(counted(theirs), counted(ours))}
    assert back == {one.name: -one.change for one in found}
