"""What two servers tell otherwise of one schema."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.analyse.schema import SchemaDifference, compared_schemas
from dbdyno.records.load_words import SchemaNote, ServerSchema

TOLD = {"orders.note": {"type": "text", "collation": "a_ci"}, "index orders.by_note": {"definition": "note"}}


def a_schema(told: Any = TOLD, **more: Any) -> ServerSchema:
    return ServerSchema(**{"engine": "one", "told": told, **more})


def differences(before: ServerSchema, after: ServerSchema, **how: bool) -> list[tuple[str, str, str, str]]:
    found = compared_schemas("other", before, after, **how).differences
    return [(one.thing, one.what, one.before, one.after) for one in found]


def test_what_both_tell_alike_is_alike() -> None:
    found = compared_schemas("other", a_schema(), a_schema())
    assert (found.compared, found.differences, found.why_not) == (2, (), "")


def test_a_value_differs_and_a_word_of_one_side_alone_does_not() -> None:
    after = {"orders.note": {"type": "text", "collation": "b_ci", "compression": "l"}, **a_schema().told}
    after["orders.note"] = {"type": "text", "collation": "b_ci", "compression": "l"}
    assert differences(a_schema(), a_schema(after)) == [("orders.note", "collation", "a_ci", "b_ci")]


def test_what_is_missing_differs_unless_the_study_gave_it_or_the_record_left_it_out() -> None:
    after = {"orders.note": TOLD["orders.note"]}
    lost = [("index orders.by_note", "exists", "yes", "no")]
    assert differences(a_schema(), a_schema(after)) == lost
    assert differences(a_schema(), a_schema(after), own_indexes=True) == []
    assert differences(a_schema(), a_schema(after, left_out=3)) == []
    assert "3 things" in compared_schemas("other", a_schema(), a_schema(after, left_out=3)).why_not


def test_a_name_that_one_server_reserves_is_told_of_its_columns_and_of_its_table() -> None:
    assert differences(a_schema(), a_schema(reserved=("note",))) == [
        ("orders.note", "name", "free", "reserved")
    ]
    assert differences(a_schema(reserved=("orders",)), a_schema()) == [("orders", "name", "reserved", "free")]


@pytest.mark.parametrize(("value", "known"), [("b_.*", "sorts otherwise"), ("c_.*", "")])
def test_a_note_stands_beside_a_value_that_it_is_of(value: str, known: str) -> None:
    note = SchemaNote(what="collation", value=value, says="sorts otherwise", since="2", source="a manual")
    after = a_schema({"orders.note": {"type": "text", "collation": "B_ci"}}, notes=(note,), left_out=1)
    [found] = compared_schemas("other", a_schema(), after).differences
    told = SchemaDifference(thing="orders.note", what="collation", before="a_ci", after="B_ci")
    assert found == (told.but(known=known, since="2", source="a manual") if known else told)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (a_schema(engine="two"), "one and two have no words in common for one"),
        (a_schema(why_not="the server is gone"), "the server is gone"),
    ],
)
def test_schemas_that_cannot_be_compared_say_why(after: ServerSchema, why: str) -> None:
    found = compared_schemas("other", a_schema(), after)
    assert (found.compared, found.differences, found.why_not) == (0, (), why)
