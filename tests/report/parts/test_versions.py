"""Versions under each condition, as reports show them."""

from __future__ import annotations

from dbdyno.analyse.matrix import matrix
from dbdyno.analyse.versions import Versions, versions_of
from dbdyno.report import document
from dbdyno.report.figures import heat
from dbdyno.report.parts import matrix as words
from dbdyno.report.parts import run
from tests.analyse.factory import blocked
from tests.analyse.versions_cases import MEMORY, NEW, measured, name_of, slower_with_many_clients
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
    spec = heat.versions(_found())
    assert spec is not None
    [rows] = spec["datasets"].values() if "datasets" in spec else [spec["data"]["values"]]
    by_place = {(row["column"], row["line"]): row for row in rows}
    worst, best = by_place["64", f"{NEW}, config.pool 64M"], by_place["64", f"{NEW}, config.pool 1G"]
    assert (worst["extreme"], worst["kind"], worst["strength"]) == ("worst", "worse", heat.STRENGTH_MOST)
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
