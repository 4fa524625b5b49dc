"""Charts: colours that tell parts apart, and axes that are read at a glance."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

import altair
import pytest
import vl_convert
from altair.utils import schemapi
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.gate import Gate
from dbdyno.findings import split, trend
from dbdyno.report.figures import charts, vega
from dbdyno.report.figures.charts import PART_COLOURS, figure
from dbdyno.report.renderers import html as document_html
from tests.report.cases import CASES
from tests.report.figures.gate_cases import GATE
from tests.report.forms import as_page, over_days, page_of_case, with_frontier


def test_every_part_of_an_operation_has_a_colour_of_its_own() -> None:
    assert set(PART_COLOURS) == set(split.PARTS.values())
    assert len(set(PART_COLOURS.values())) == len(PART_COLOURS)


@pytest.mark.parametrize(("us", "label"), [(2.0, "0.4"), (1_900.0, "1,200"), (25_000.0, "20,000")])
def test_microseconds_are_written_in_full(us: float, label: str) -> None:
    spec = charts.split([("baseline", [(next(iter(PART_COLOURS)), us)])])
    drawn = vl_convert.vegalite_to_svg({**spec, "width": 600})
    assert label in re.findall(r">([^<>]+)</text>", drawn)


PAGES: dict[str, Callable[[], str]] = {
    **{name: partial(page_of_case, name) for name in CASES},
    "frontier of searches": lambda: as_page(with_frontier()),
    "trend": lambda: document_html.render(trend.document(over_days())),
}


@pytest.mark.parametrize("kind", PAGES)
def test_every_figure_is_one_by_the_schema_of_vega_lite(kind: str) -> None:
    """Dyno itself does not look."""
    with schemapi.debug_mode(True):
        assert "<script" in PAGES[kind]()


def test_the_schema_refuses_what_is_no_figure() -> None:
    wrong = (
        altair.Chart(vega.data([{"a": 1}])).mark_bar().encode(x=altair.X("a:Q", scale={"type": "no type"}))
    )
    assert vega.spec(wrong)["encoding"]
    with schemapi.debug_mode(True), pytest.raises(schemapi.SchemaValidationError):
        vega.spec(wrong)


RATIOS = st.floats(1e-4, 1e4)


def with_effect(low: float, ratio: float, high: float) -> Gate:
    assert GATE.result.effect is not None
    effect = GATE.result.effect.model_copy(update={"low": low, "ratio": ratio, "high": high})
    return GATE.model_copy(update={"result": GATE.result.model_copy(update={"effect": effect})})


@given(st.tuples(RATIOS, RATIOS, RATIOS).map(sorted))
def test_every_place_lies_on_the_axis_in_the_order_of_the_ratios(ends: list[float]) -> None:
    found = figure(with_effect(*ends))
    assert found is not None
    for bar in found.bars:
        assert 0.0 <= bar.low <= bar.high <= 100.0
        assert bar.dot is None or bar.low <= bar.dot <= bar.high
    places = [place for place, _ in found.ticks]
    assert places == sorted(places) and 0.0 <= found.one <= 100.0


def test_the_margin_and_the_floor_lie_around_one() -> None:
    found = figure(GATE)
    assert found is not None and [bar.kind for bar in found.bars] == ["slower", "margin", "floor"]
    for bar in found.bars[1:]:
        assert found.one - bar.low == pytest.approx(bar.high - found.one, abs=0.02)
    assert found.bars[0].high < found.one and len(found.bars[0].marks) == 6


def test_a_run_without_a_ratio_has_no_bars() -> None:
    none = GATE.model_copy(update={"result": GATE.result.model_copy(update={"effect": None})})
    assert figure(none) is None and math.isfinite(GATE.method.margin)
