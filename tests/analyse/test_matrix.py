"""The matrix: each variant in its row, each run in its column, and the extremes by what is better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbdyno.analyse.model import Verdict
from dbdyno.findings.matrix import Cell, Instructions, Load, matrix, unlike
from dbdyno.frozen import Level
from dbdyno.study import Goal
from tests.analyse.factory import blocked, broken
from tests.analyse.matrix_cases import BY_SELECTS, BY_WRITES, PGO, measured, runs


def test_each_variant_has_a_row_and_each_run_a_column() -> None:
    analyses = runs()
    found = matrix(analyses)
    assert found.loads[1] == Load(run="point_select-8", workload="point_select", clients=8)
    assert [(row.variant, row.trained_on) for row in found.rows] == [
        (BY_WRITES, ("read_write",)),
        (BY_SELECTS, ("point_select",)),
    ]
    for place, analysis in enumerate(analyses):
        effects = {variant.name: variant.effect for variant in analysis.variants}
        cells = [row.cells[place] for row in found.rows]
        assert [cell and cell.effect for cell in cells] == [effects[BY_WRITES], effects[BY_SELECTS]]


def test_the_best_and_the_worst_cell_are_found() -> None:
    found = matrix(runs())
    assert found.best is not None and found.worst is not None
    assert (found.best.variant, found.best.load.workload, found.best.load.clients) == (
        BY_SELECTS,
        "point_select",
        8,
    )
    assert (found.worst.variant, found.worst.load.workload) == (BY_SELECTS, "read_write")
    assert (found.best.verdict, found.worst.verdict) == (Verdict.FASTER, Verdict.SLOWER)


def test_of_a_latency_the_smallest_ratio_is_the_best() -> None:
    latency = Goal(response="mean_ms")
    found = matrix([measured("tpcb", 8, {BY_WRITES: 1.4, BY_SELECTS: 0.7}, goal=latency)])
    assert found.best is not None and found.worst is not None
    assert found.best.effect.ratio < found.worst.effect.ratio


def test_what_has_no_speed_has_a_verdict_and_is_no_extreme() -> None:
    changes = {BY_WRITES: broken("history 117"), BY_SELECTS: blocked("build.pgo", "point_select", "off")}
    found = matrix([measured("tpcb", 8, {}, changes)])
    assert [row.cells for row in found.rows] == [
        (Cell(verdict=Verdict.BROKEN),),
        (Cell(verdict=Verdict.BLOCKED),),
    ]
    assert found.best is None and found.worst is None


def test_a_run_without_a_variant_leaves_its_cell_empty() -> None:
    fewer: dict[str, list[Level]] = {"build.pgo": ["off", "point_select"]}
    found = matrix([*runs(), measured("tpcc", 1, {BY_SELECTS: 1.1}, factors=fewer)])
    cells = {row.variant: row.cells[-1] for row in found.rows}
    assert cells[BY_WRITES] is None and cells[BY_SELECTS] is not None


def test_a_cell_has_what_its_run_counted() -> None:
    counts = {"baseline": (100.0, 100.0), BY_WRITES: (90.0, 90.0), BY_SELECTS: (99.0, 101.0)}
    found = matrix([measured("tpcb", 8, {}, counts=counts), measured("tpcc", 8, {})])
    by_writes, by_selects = [
        [None if cell is None else cell.instructions for cell in row.cells] for row in found.rows
    ]
    assert by_writes[0] is not None and by_selects[0] is not None
    assert by_writes == [Instructions(ratio=by_writes[0].ratio, told=True), None]
    assert by_writes[0].ratio == pytest.approx(0.9) and not by_selects[0].told


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"goal": Goal(response="p99_ms")}, "the response of read_write-8 is throughput, of tpcb-1 p99_ms"),
        ({"factors": {**PGO, "build.lto": ["off", "full"]}}, "baseline has other levels in tpcb-1"),
        ({}, ""),
    ],
    ids=["response", "levels", "alike"],
)
def test_runs_of_other_variants_make_no_matrix(other: dict[str, Any], said: str) -> None:
    told = unlike([runs()[0], measured("tpcb", 1, {}, **other)])
    assert told.startswith(said) and bool(told) is bool(said)


def test_runs_of_other_engines_make_no_matrix() -> None:
    first = runs()[0]
    reference = replace(first.study.engine, engine="sqlite")
    study = first.study.but(engine=reference)
    assert unlike([first, first.but(study=study)]).endswith("read_write-8 sqlite")
