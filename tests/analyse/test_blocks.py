"""The trials of a block: several baselines count as their mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbdyno.analyse import Analysis, analyse
from dbdyno.analyse.blocks import mean_of
from dbdyno.analyse.model import Role, Verdict
from dbdyno.records.record import Outcome
from tests.analyse.factory import a_run, a_study, ended, records_of

LEVELS = {"config.page_cache": ["2k", "4k", "8k", "64k"]}
FASTER = "config.page_cache=64k"


def analysed(baselines: int, blocks: int = 12, **changed: object) -> Analysis:
    study = a_study(LEVELS, blocks=blocks).model_copy(update={"baselines": baselines})
    records = records_of(study, {FASTER: 1.1}, trial_sd=0.02, **changed)  # type: ignore[arg-type]
    return analyse(study, a_run(study), records)


def effect_sd(found: Analysis) -> float:
    return float(np.mean([one.effect.log_sd for one in found.candidates if one.effect and one.effect.log_sd]))


def test_more_baselines_take_noise_out_of_every_comparison() -> None:
    one, three = (effect_sd(analysed(count, blocks=300)) for count in (1, 3))
    assert three / one == pytest.approx(math.sqrt((1 + 1 / 3) / 2), rel=0.1)


def test_further_baselines_are_no_candidates_and_check_the_instrument() -> None:
    found = analysed(3)
    assert [one.name for one in found.variants if one.role is Role.TWIN] == ["baseline-2", "baseline-3"]
    assert found.method.comparisons == 3
    assert found.aa is not None and found.aa.pairs == 24
    [faster] = found.answer.faster
    assert faster == FASTER


def test_a_block_has_a_pair_while_any_of_its_baselines_has_a_speed() -> None:
    failed = ended(Outcome.FAILED, "the server did not start")
    found = analysed(2, changes={"baseline": lambda record: record if record.block else failed(record)})
    assert all(one.effect is not None and one.effect.pairs == 12 for one in found.candidates)


def test_a_broken_baseline_breaks_them_all() -> None:
    broken = ended(Outcome.BROKEN, "balances differ")
    found = analysed(2, changes={"baseline-2": broken})
    assert {one.verdict for one in found.candidates} == {Verdict.INCONCLUSIVE}
    assert found.answer.baseline_broken


def test_a_mean_is_geometric_where_it_can_be() -> None:
    assert mean_of([1.0, 4.0]) == pytest.approx(2.0)
    assert mean_of([0.0, 4.0]) == pytest.approx(2.0)
