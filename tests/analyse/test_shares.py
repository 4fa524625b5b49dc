"""What each change has of a variant's gain."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from dbdyno.analyse import Analysis
from dbdyno.analyse.model import VariantResult
from dbdyno.findings import analyse
from dbdyno.findings.gap import shares
from dbdyno.frozen import Level
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Design
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.searches import a_search, carried_out, listed, step

TWO = {"config.page_cache": ["2k", "64k"], "config.forced_writes": ["on", "off"]}
FIRST, SECOND = "config.page_cache=64k", "config.forced_writes=off"
BOTH = f"{FIRST}, {SECOND}"


def analysed(design: Design, ratios: dict[str, float]) -> tuple[Analysis, list[Record]]:
    study = a_study(factors=TWO, design=design)
    records = records_of(study, ratios, block_sd=0.0, trial_sd=0.001)
    return analyse(study, a_run(study), records), records


def named(analysis: Analysis, name: str) -> VariantResult:
    return next(each for each in analysis.variants if each.name == name)


def test_a_single_change_has_the_whole_gain() -> None:
    analysis, records = analysed(Design.ONE_AT_A_TIME, {FIRST: 1.5})
    variant = named(analysis, FIRST)
    assert shares(analysis, records, variant) == {"config.page_cache": variant.effect}


def test_the_shares_of_a_factorials_variant_multiply_to_its_gain() -> None:
    analysis, records = analysed(Design.FACTORIAL, {FIRST: 1.5, SECOND: 1.2, BOTH: 1.8})
    found = shares(analysis, records, named(analysis, BOTH))
    assert found["config.page_cache"].ratio == pytest.approx(1.5, rel=0.01)
    assert found["config.forced_writes"].ratio == pytest.approx(1.2, rel=0.01)


def test_the_shares_of_a_searchs_winner_are_what_taking_each_change_back_cost() -> None:
    def both_matter(levels: Mapping[str, Level]) -> float:
        return 0.5 * step(levels, "config.log") + 0.3 * (step(levels, "config.io") > 0)

    study, run = a_search(listed("config.log", 2), listed("config.io", 2))
    records = carried_out(study, run, both_matter)
    analysis = analyse(study, run, records)
    assert analysis.search is not None and analysis.search.winner is not None
    found = shares(analysis, records, named(analysis, analysis.search.winner))
    assert found["config.log"].ratio == pytest.approx(math.exp(0.5), rel=0.1)
    assert found["config.io"].ratio == pytest.approx(math.exp(0.3), rel=0.1)


def test_a_ladder_tells_no_shares() -> None:
    analysis, records = analysed(Design.LADDER, {FIRST: 1.5, BOTH: 1.8})
    last = analysis.variants[-1]
    assert len(last.changed) == 2
    assert shares(analysis, records, last) == {}


def test_where_a_step_was_not_measured_nothing_is_shared_out() -> None:
    study = a_study(factors=TWO, design=Design.FACTORIAL)
    records = records_of(study, {BOTH: 1.8}, {FIRST: ended(Outcome.FAILED, "it did not start")})
    analysis = analyse(study, a_run(study), records)
    assert shares(analysis, records, named(analysis, BOTH)) == {}
