"""The figures of a report."""

from __future__ import annotations

from dbdyno.report.figures.charts import PART_COLOURS
from dbdyno.report.parts import split


def test_every_part_of_an_operation_has_a_colour_of_its_own() -> None:
    assert set(PART_COLOURS) == set(split.PARTS.values())
    assert len(set(PART_COLOURS.values())) == len(PART_COLOURS)
