"""Charts: colours that tell parts apart, and axes that are read at a glance."""

from __future__ import annotations

import re

import pytest
import vl_convert

from dbdyno.findings import split
from dbdyno.report.figures import charts
from dbdyno.report.figures.charts import PART_COLOURS


def test_every_part_of_an_operation_has_a_colour_of_its_own() -> None:
    assert set(PART_COLOURS) == set(split.PARTS.values())
    assert len(set(PART_COLOURS.values())) == len(PART_COLOURS)


@pytest.mark.parametrize(("us", "label"), [(2.0, "0.4"), (1_900.0, "1,200"), (25_000.0, "20,000")])
def test_microseconds_are_written_in_full(us: float, label: str) -> None:
    spec = charts.split([("baseline", [(next(iter(PART_COLOURS)), us)])])
    drawn = vl_convert.vegalite_to_svg({**spec, "width": 600})
    assert label in re.findall(r">([^<>]+)</text>", drawn)
