"""Versions under each condition, as reports show them."""

from __future__ import annotations

import pytest

from dbdyno.analyse.model import Verdict
from dbdyno.findings import matrix as words
from dbdyno.findings import run, versions
from dbdyno.findings.matrix import matrix
from dbdyno.findings.versions import Versions, versions_of
from dbdyno.report import document
from dbdyno.report.renderers import html
from dbdyno.study import Design
from tests.analyse.factory import blocked
from tests.analyse.versions_cases import (
    CLIENTS,
    MEMORY,
    NEW,
    OLD,
    measured,
    name_of,
    slower_with_many_clients,
)
from tests.report.shown import in_every_form


def _found() -> Versions:
    found = versions_of(slower_with_many_clients())
    assert found is not None
    return found


def test_the_worst_cell_is_told_before_the_best_one_in_every_form() -> None:
    for form in in_every_form(run.document(slower_with_many_clients())):
        told = " ".join(form.replace("\\", "").split())
        assert f"Worst: {NEW} with clients=64, config.pool=64M, 0.5" in told
        assert f"Best: {NEW} with clients=64, config.pool=1G, 1." in told


def test_the_heat_map_has_each_cell_and_names_both_ends() -> None:
    spec = html.drawn(versions.figure(_found()))
    assert isinstance(spec, dict)
    [rows] = spec["datasets"].values() if "datasets" in spec else [spec["data"]["values"]]
    by_place = {(row["column"], row["line"]): row for row in rows}
    worst, best = by_place["64", f"{NEW}, config.pool 64M"], by_place["64", f"{NEW}, config.pool 1G"]
    assert (worst["extreme"], worst["kind"], worst["strength"]) == ("worst", "worse", versions.STRENGTH_MOST)
    assert (best["extreme"], best["kind"]) == ("best", "better")
    assert len(by_place) == 4 and all("–" in row["below"] for row in rows)


def test_a_cell_without_a_speed_is_shown_by_its_verdict() -> None:
    analysis = measured({}, {name_of(64, NEW, "1G"): blocked(MEMORY, "1G", "64M")})
    terminal, *_ = in_every_form(run.document(analysis))
    section = terminal[terminal.index("Versions under each condition") :]
    assert any("1G" in line and "blocked" in line for line in section.splitlines()[:9])


def test_runs_of_several_loads_are_one_page_with_the_worst_cell_of_all() -> None:
    other = measured({name_of(1, NEW, "1G"): 0.25}, run="other")
    load = other.study.workload.but(name="read_only")
    found = matrix([slower_with_many_clients(), other.but(study=other.study.but(workload=load))])
    assert [one.workload for one in found.versions] == ["tpcb", "read_only"]
    made = words.document(found)
    worst, best = map(document.plain, made.answer)
    assert worst.startswith(f"Worst: read_only, {NEW} with clients=1, config.pool=1G, 0.2")
    assert best.startswith(f"Best: tpcb, {NEW} with clients=64, config.pool=1G, 1.")
    assert [one.title for one in made.sections] == [
        "tpcb: versions under each condition",
        "read_only: versions under each condition",
    ]


def test_a_cell_divides_by_the_first_version_under_the_same_condition() -> None:
    found = versions_of(slower_with_many_clients())
    assert found is not None and found.first == OLD
    assert found.factors == {CLIENTS: (1, 64), MEMORY: ("64M", "1G")}
    ratios = {one.condition: one.effect.ratio for one in found.cells if one.effect is not None}
    expected = {(1, "64M"): 1.0, (1, "1G"): 1.0, (64, "64M"): 0.5, (64, "1G"): 1.1}
    assert ratios == pytest.approx(expected, rel=0.02)
    assert {one.version for one in found.cells} == {NEW}


def test_the_worst_cell_and_the_best_one_are_found_and_judged() -> None:
    found = versions_of(slower_with_many_clients())
    assert found is not None and found.worst is not None and found.best is not None
    assert (found.worst.condition, found.worst.verdict) == ((64, "64M"), Verdict.SLOWER)
    assert (found.best.condition, found.best.verdict) == ((64, "1G"), Verdict.FASTER)


def test_the_intervals_of_all_cells_hold_together() -> None:
    found = versions_of(slower_with_many_clients())
    assert found is not None
    for one in found.cells:
        assert one.effect is not None and one.effect.pairs == 8
        assert one.effect.confidence == pytest.approx(0.95 ** (1 / 4))


def test_a_cell_without_a_speed_has_a_verdict_alone() -> None:
    name = name_of(64, NEW, "1G")
    found = versions_of(measured({}, {name: blocked(MEMORY, "1G", "64M")}))
    assert found is not None
    [cell] = [one for one in found.cells if one.effect is None]
    assert (cell.condition, cell.verdict) == ((64, "1G"), Verdict.BLOCKED)


def test_other_studies_have_no_such_cells() -> None:
    analysis = slower_with_many_clients()
    assert versions_of(analysis.but(study=analysis.study.but(design=Design.ONE_AT_A_TIME))) is None
    engine_alone = analysis.study.factors[1:2]
    assert versions_of(analysis.but(study=analysis.study.but(factors=engine_alone))) is None
    without = (analysis.study.factors[0], analysis.study.factors[2])
    assert versions_of(analysis.but(study=analysis.study.but(factors=without))) is None
