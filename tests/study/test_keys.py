"""A key that is declared is read, told to editors, written and documented, without another line anywhere."""

from __future__ import annotations

from typing import Any

from dbdyno.frozen import Frozen
from dbdyno.study.catalogue import NOTHING
from dbdyno.study.grammars import duration, integer, list_of
from dbdyno.study.keys import Key, StudySection
from tests.study.page import PAGE, SECTIONS, TABLE, as_declared


class Pause(Frozen):
    """A noun of this test."""

    every_s: float = 90.0
    counts: tuple[int, ...] = ()
    least: int = 0


EVERY = Key("every", duration(1.0), "How often it pauses.", "Seldom.", "every_s")
COUNTS = Key("counts", list_of(integer(1, 9)), "How much.", field="counts", otherwise="all")
LEAST = Key("least", integer(0, 5), "At least.", field="least", missing=lambda _: "give one", tacit=True)
PAUSE = StudySection("pause", (EVERY, COUNTS, LEAST), "When it rests.", Pause)


def test_a_key_has_the_default_of_its_noun() -> None:
    assert [PAUSE.default(key) for key in PAUSE.keys] == [90.0, None, 0]


def test_editors_are_told_each_key_with_its_default_and_its_words() -> None:
    schema: dict[str, Any] = PAUSE.schema(NOTHING)
    assert schema["description"] == "When it rests." and schema["additionalProperties"] is False
    every, counts, least = schema["properties"].values()
    assert (every["default"], every["description"]) == ("90s", "How often it pauses.")
    assert counts["description"] == "How much. Default: all." and "default" not in counts
    assert least == {"type": "integer", "minimum": 0, "maximum": 5, "description": "At least."}


def test_the_documentation_has_a_row_for_each_key() -> None:
    assert PAUSE.page()[2:] == [
        '| `every` | `"90s"` | How often it pauses. Seldom. |',
        "| `counts` | all | How much. 1 to 9. |",
        "| `least` | required | At least. 0 to 5. |",
    ]


def test_a_key_is_written_as_a_study_has_it() -> None:
    assert PAUSE.row("every") == ("every", '"90s"', ""), "without a value, its default"
    assert PAUSE.row("counts", (1, 2), "how much") == ("counts", "[1, 2]", "how much")


def test_what_is_nothing_by_default_is_left_out_where_it_is_nothing() -> None:
    assert [key for key, _, _ in PAUSE.rows(Pause(), PAUSE.names)] == ["every"]
    assert PAUSE.rows(Pause(every_s=2.0, counts=(3,), least=1), {"counts", "least"}) == [
        ("counts", "[3]", ""),
        ("least", "1", ""),
    ]
    assert PAUSE.rows(Pause(every_s=0.0), {"every"}) == [("every", '"0s"', "")]


def test_the_reference_of_studies_is_as_declared() -> None:
    page = PAGE.read_text()
    assert len(TABLE.findall(page)) == len(SECTIONS)
    assert as_declared(page) == page, "python -m tests.study.page writes its tables"
