"""The table of verdicts: what failed and what was tried again stand in it where variants differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from dbdyno.analyse.bisect import BisectionEvidence, Look
from dbdyno.analyse.compare import Conclusion, compare
from dbdyno.analyse.found import RatioPosition
from dbdyno.analyse.model import Verdict
from dbdyno.analyse.trend import Movement, trend
from dbdyno.findings import analyse, run
from dbdyno.findings.versions import versions_of
from dbdyno.study import Goal
from tests.analyse import compare_cases, trend_cases
from tests.analyse.factory import a_run, a_study, changed, records_of
from tests.analyse.hosts_cases import AT_64K, AT_256K, FLEET, on_fleet, study_of
from tests.analyse.noises import PLAIN
from tests.analyse.versions_cases import slower_with_many_clients
from tests.report.cases import CASES, analysed
from tests.report.shown import in_every_form

FAST = "config.page_cache=64k"


def test_errors_and_retries_are_columns_where_a_variant_has_more_of_them() -> None:
    study = a_study({"config.page_cache": ["2k", "64k"]}, blocks=12)
    records = [
        one
        if one.variant != FAST or one.tally is None
        else changed(one, tally=one.tally.but(errors={"1020 record changed": one.tally.operations}))
        for one in records_of(study, {FAST: 0.5})
    ]
    found = analysed(study, records)
    for form in in_every_form(run.document(found)):
        assert "failed" in form and "50 %" in form and "0 %" in form
    retried = [
        one
        if one.variant != FAST or one.tally is None
        else changed(one, tally=one.tally.but(errors={"1213 deadlock": 3}, retries=one.tally.operations))
        for one in records
    ]
    for form in in_every_form(run.document(analysed(study, retried))):
        assert "retried" in form and "100 %" in form


def test_without_errors_no_column_tells_of_them() -> None:
    terminal, page, markdown = in_every_form(run.document(CASES["guards"]()))
    assert not any(" retried " in form for form in (terminal, page, markdown))


Ends = tuple[float | None, float | None]
"""The ends of an interval."""
Decided = Callable[[float], Iterator[tuple[bool, Ends]]]
"""Whether there is no effect with this margin, beside the interval of 95 %."""


def _of_versions(margin: float) -> Iterator[tuple[bool, Ends]]:
    analysis = slower_with_many_clients()
    found = versions_of(analysis.but(method=analysis.method.but(margin=margin)))
    assert found is not None
    for cell in found.cells:
        if cell.effect is not None:
            yield cell.verdict is Verdict.NO_EFFECT, (cell.effect.low, cell.effect.high)


def _of_hosts(margin: float) -> Iterator[tuple[bool, Ends]]:
    study = study_of(FLEET, goal=Goal(margin=margin))
    records = on_fleet(study, {AT_64K: (1.01, 1.02, 1.03), AT_256K: (1.01, 1.0, 0.99)})
    found = analyse(study, a_run(study), records).hosts
    assert found is not None
    for variant in found.variants:
        yield from ((one.told is RatioPosition.LEVEL, (one.low, one.high)) for one in variant.each)


def _of_two_runs(margin: float) -> Iterator[tuple[bool, Ends]]:
    sides = (
        compare_cases.analysed(compare_cases.a_host(), speed, seed) for speed, seed in ((1, 1), (1.02, 2))
    )
    left, right = (side.but(method=side.method.but(margin=margin)) for side in sides)
    for gap in compare([left], [right]).gaps:
        if gap.residual is not None:
            none = gap.conclusion in (Conclusion.NO_GAP, Conclusion.NO_GAP_OF_RUNS)
            yield none, (gap.residual.low, gap.residual.high)


def _of_a_trend(margin: float) -> Iterator[tuple[bool, Ends]]:
    runs = [
        trend_cases.a_trend_run(day, value) for day, value in enumerate((1.5, 1.51, 1.49, 1.53, 1.54, 1.52))
    ]
    study = trend_cases.STUDY.but(goal=Goal(margin=margin))
    for shift in trend(study, runs, {}).variants[0].shifts:
        assert shift.ratio is not None
        yield shift.movement is Movement.SAME, (shift.ratio.low, shift.ratio.high)


def _of_a_bisection(margin: float) -> Iterator[tuple[bool, Ends]]:
    logs = {("a host", block): 0.01 * math.sin(block) for block in range(12)}
    seen = SimpleNamespace(estimator=PLAIN, worse=1.0, response=SimpleNamespace(name="throughput"))
    effect = PLAIN.ratio("throughput", logs, PLAIN.method.confidence_each)
    assert effect is not None
    told = BisectionEvidence._told(cast("BisectionEvidence", seen), logs, margin)
    yield told is Look.SAME, (effect.low, effect.high)


@pytest.mark.parametrize("of", [_of_versions, _of_hosts, _of_two_runs, _of_a_trend, _of_a_bisection])
def test_no_effect_is_told_by_the_narrower_interval(
    of: Callable[[float], Iterator[tuple[bool, Ends]]],
) -> None:
    """Some margin holds that interval alone: the one beside the ratio reaches out of it."""

    def reaches_out(margin: float, ends: Ends) -> bool:
        low, high = ends
        return low is not None and high is not None and (low < 1.0 / (1.0 + margin) or high > 1.0 + margin)

    margins = np.expm1(np.linspace(0.002, 0.08, 60)).tolist()
    assert any(none and reaches_out(margin, ends) for margin in margins for none, ends in of(margin))
