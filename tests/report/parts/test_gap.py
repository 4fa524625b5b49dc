"""The gap explained, in each form: from all variants, from a fraction, and with a factor left out."""

from __future__ import annotations

import json

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from dbdyno.analyse import analyse
from dbdyno.analyse.model import Gap, LeftOut
from dbdyno.report.figures import charts
from dbdyno.report.parts import gap
from dbdyno.study import Design
from tests.analyse.factory import a_run, a_study, records_of
from tests.report.cases import fraction_of_seven, two_factors
from tests.report.forms import as_markdown, as_page, print_sections


def gap_of(case: str) -> Gap:
    found = (fraction_of_seven() if case == "fraction" else two_factors()).gap
    assert found is not None
    if case != "left out":
        return found
    lost = LeftOut(factor="memory.thp", level="always", cause="the server forbids it to itself\x1b[31m")
    return found.model_copy(update={"left_out": (lost,)})


@pytest.mark.parametrize("case", ["whole", "fraction", "left out"])
def test_as_printed(case: str, snapshot: SnapshotAssertion) -> None:
    console = Console(width=110, highlight=False)
    with console.capture() as shown:
        print_sections(gap.sections(gap_of(case)), console)
    assert "\n".join(line.rstrip() for line in shown.get().split("\n")) == snapshot


@pytest.mark.parametrize("case", ["whole", "fraction"])
def test_the_bars_of_the_waterfall_touch_and_end_at_the_total(case: str) -> None:
    spec = charts.waterfall(gap_of(case))
    assert spec is not None
    bars = spec["layer"][0]["data"]["values"] if "data" in spec["layer"][0] else spec["data"]["values"]
    *parts, total = bars
    assert [one["to"] for one in parts[:-1]] == [one["from"] for one in parts[1:]]
    assert parts[0]["from"] == total["from"] == 1.0
    assert parts[-1]["to"] == pytest.approx(total["to"])
    assert (parts[-1]["step"] == gap.RESIDUAL) == (case == "fraction")


def test_the_page_and_markdown_hold_the_product_and_what_cannot_be_told_apart() -> None:
    analysis = fraction_of_seven()
    page, text = as_page(analysis), as_markdown(analysis)
    for told in ("C×E + F×G", gap.RESIDUAL):
        assert told in page and told in text
    assert "## The gap explained" in text


def test_json_names_the_interactions_of_three_that_a_share_holds() -> None:
    shares = json.loads(gap_of("fraction").model_dump_json())["shares"]
    named = {share["factor"]: share["holds_besides"] for share in shares}
    assert named["config.setting_c"] == [["config.setting_e", "config.setting_f", "workload.clients"]]
    assert named["config.setting_a"] == []


@pytest.mark.parametrize(
    ("gains", "said", "unsaid"),
    [
        ((1.0, 1.0), "The data cannot say whether there is a gap", "largest part"),
        ((1.5, 1.5), "cannot say which part is the largest", "Its largest part"),
        ((3.0, 1.1), "Its largest part is config.a", "cannot say"),
    ],
)
def test_a_largest_part_is_named_only_where_it_is_told(
    gains: tuple[float, float], said: str, unsaid: str
) -> None:
    study = a_study({"config.a": ["off", "on"], "config.b": ["off", "on"]}, design=Design.FACTORIAL, blocks=8)
    names = ("config.a=on", "config.b=on")
    ratios = dict(zip(names, gains, strict=True)) | {", ".join(names): gains[0] * gains[1]}
    found = analyse(study, a_run(study), records_of(study, ratios)).gap
    assert found is not None
    assert said in gap.title(found) and unsaid not in gap.title(found)
