"""How values are written: what is written is read back as what it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.study import grammars
from dbdyno.study.catalogue import NOTHING
from dbdyno.study.grammars import Grammar, duration, integer, list_of, percentage
from dbdyno.study.keys import Key, StudySection
from dbdyno.study.nouns import Reference
from dbdyno.study.tables import DATA, FRONT, GOAL, RANGE, RESTARTS, SEARCH, SOAK, STUDY, WORKLOAD
from dbdyno.study.values import Faults, ValueFault
from tests.study.catalogue import CATALOGUE

SECTIONS = (STUDY, FRONT, DATA, GOAL, RANGE, RESTARTS, SEARCH, SOAK, WORKLOAD)
DEFAULTS = [
    (section, key) for section in SECTIONS for key in section.keys if section.default(key) is not None
]


@pytest.mark.parametrize(("section", "key"), DEFAULTS, ids=lambda one: one.name)
def test_a_default_is_written_as_it_is_read(section: StudySection, key: Key) -> None:
    default = section.default(key)
    assert key.grammar.read(key.grammar.written(default), CATALOGUE) == default


@given(st.one_of(st.integers(0, 86_400), st.floats(0, 86_400).map(lambda seconds: round(seconds, 3))))
def test_a_duration_is_written_as_it_is_read(seconds: float) -> None:
    grammar = duration(0.0)
    assert grammar.read(grammar.written(seconds), NOTHING) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("grammar", "value", "written"),
    [
        (duration(0.0), 0.0, "0s"),
        (duration(0.0), 0.5, "0.5s"),
        (duration(0.0), 90.0, "90s"),
        (duration(0.0), 1_800.0, "30m"),
        (duration(0.0), 86_400.0, "24h"),
        (percentage(0, 99), 0.005, "0.5%"),
        (percentage(0, 99), 0.07, "7%"),
        (grammars.PATHS, ("a.sql",), "a.sql"),
        (grammars.PATHS, ("a.sql", "b.sql"), ["a.sql", "b.sql"]),
    ],
)
def test_a_value_is_written_as_a_person_would(grammar: Grammar[Any], value: Any, written: Any) -> None:
    assert grammar.written(value) == written
    assert grammar.read(written, NOTHING) == value


@pytest.mark.parametrize("text", ["mariadb", "mariadb@11.8", "mariadb:/usr/sbin/mariadbd"])
def test_a_reference_is_written_as_it_is_read(text: str) -> None:
    grammar = grammars.reference(grammars.engines, "engine", "")
    found = grammar.read(text, CATALOGUE)
    assert isinstance(found, Reference) and grammar.written(found) == text


def test_each_wrong_element_of_a_list_is_told_and_the_others_are_kept() -> None:
    with pytest.raises(Faults) as caught:
        list_of(integer(1, 9)).read([1, 0, 2, 2, "x"], NOTHING)
    assert [index for index, _ in caught.value.faults] == [1, 3, 4]
    assert caught.value.sound == (1, 2)
    assert caught.value.message == "cannot be 0"


def test_a_ladder_rises() -> None:
    ladder = grammars.ladder(integer(1, 9))
    assert ladder.read([1, 5], NOTHING) == (1, 5)
    for wrong in ([], [5, 1], [1, 1], list(range(1, 22)), 3):
        with pytest.raises(ValueFault):
            ladder.read(wrong, NOTHING)
