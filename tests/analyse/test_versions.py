"""A later version over the first one, under the same levels of all else."""

from __future__ import annotations

import pytest

from dbdyno.analyse.model import Verdict
from dbdyno.analyse.versions import versions_of
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
