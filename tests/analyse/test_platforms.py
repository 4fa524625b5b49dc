"""A study of platforms has verdicts of what its variants did, and none of speed."""

from __future__ import annotations

import json

import pytest

from dbdyno.analyse.model import Reason, Verdict
from dbdyno.records.record import Outcome, Record
from dbdyno.report import as_json
from tests.analyse.platforms_cases import BLOCKED, EMULATED, FOREIGN, LOSING, NATIVE, analysed


@pytest.mark.parametrize(
    ("record", "verdict", "reason"),
    [
        (EMULATED, Verdict.INCONCLUSIVE, Reason.EMULATED),
        (LOSING, Verdict.BROKEN, None),
        (BLOCKED, Verdict.BLOCKED, None),
    ],
)
def test_a_variant_has_the_verdict_of_what_it_did(
    record: Record, verdict: Verdict, reason: Reason | None
) -> None:
    found = analysed(NATIVE, record)
    baseline, foreign = found.variants
    assert (baseline.verdict, baseline.response, baseline.effect) == (None, None, None)
    assert (foreign.name, foreign.verdict, foreign.reason) == (FOREIGN, verdict, reason)
    assert foreign.effect is None and foreign.response is None and not foreign.costs


def test_no_time_of_an_emulator_is_told() -> None:
    found = analysed(NATIVE, EMULATED)
    assert found.survival is not None
    acts = [act for one in found.survival.variants for act in one.acts]
    assert [(act.rounds, act.acknowledged) for act in acts] == [(1, 100), (2, 200), (1, 100), (2, 120)]
    assert all(act.ready_s is None and act.stop_s is None and act.full_speed_s is None for act in acts)
    told = json.loads(as_json.render(found))
    assert told["trials"] == [] and told["trials_planned"] == 0
    assert told["headline"] == "All of 2 platforms tried work."


def test_what_it_ran_on_stands_beside_each_variant() -> None:
    found = analysed(NATIVE, EMULATED)
    assert found.survival is not None
    native, foreign = found.survival.variants
    assert native.platform is not None and native.platform.emulator == ""
    assert foreign.platform is not None and foreign.platform.byte_order == "big"
    assert foreign.says == "s390x, read: the server says s390x"
    assert (native.outcome, foreign.outcome) == (Outcome.MEASURED, Outcome.MEASURED)
