"""The whole verdict: how a variant's blocks ended, its guards and its interval, and how often chance alone
gives one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dbdyno.analyse import analyse, effects
from dbdyno.analyse.assurance import Outlook
from dbdyno.analyse.model import Kept, Reason, VariantResult, Verdict
from dbdyno.plan.sequential import decided
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.report.words.remarks import remark
from dbdyno.study import Goal, Guard, Interval, Study
from tests.analyse.factory import a_run, a_study, broken, ended, records_of, warned
from tests.analyse.noises import GUARD, NOISES, Guards, false_alarm

FAST = "config.page_cache=64k"
FAILED = ended(Outcome.FAILED, "the server died of SIGSEGV")
Change = Callable[[Record], Record]


def in_blocks(blocks: set[int], change: Change) -> Change:
    return lambda record: change(record) if record.block in blocks else record


def the(study: Study, records: list[Record], sequential: bool = False) -> VariantResult:
    run = a_run(study).but(sequential=sequential)
    return next(one for one in analyse(study, run, records).variants if one.name == FAST)


def left_out(study: Study, records: list[Record]) -> bool:
    return FAST in decided(study, a_run(study).but(sequential=True), records)


@pytest.mark.parametrize(
    ("lost", "verdict"), [(10, Verdict.FAILED), (3, Verdict.FAILED), (2, Verdict.FASTER)]
)
def test_the_share_of_lost_blocks_decides(lost: int, verdict: Verdict) -> None:
    study = a_study(blocks=12)
    records = records_of(study, {FAST: 1.5}, {FAST: in_blocks(set(range(lost)), FAILED)})
    assert the(study, records).verdict is verdict


@pytest.mark.parametrize(("blocks", "over"), [(1, False), (2, False), (3, True)])
def test_a_sequential_run_gives_a_server_that_failed_another_chance(blocks: int, over: bool) -> None:
    study = a_study(blocks=blocks)
    assert left_out(study, records_of(study, changes={FAST: FAILED})) is over


def test_a_sequential_run_goes_on_after_one_failure_and_one_limit_of_the_driver() -> None:
    study = a_study(blocks=2)
    limited = warned(Doubt.DRIVER_SATURATED, "thread 0")
    change = in_blocks({0}, lambda record: limited(FAILED(record)))
    assert not left_out(study, records_of(study, changes={FAST: change}))


@pytest.mark.parametrize("change", [ended(Outcome.BLOCKED, "no such device"), broken("sums differ")])
def test_what_no_further_block_can_change_ends_at_once(change: Change) -> None:
    study = a_study(blocks=1)
    assert left_out(study, records_of(study, changes={FAST: change}))


def idle(reason: str) -> Change:
    def change(record: Record) -> Record:
        evidence = tuple(one.but(idle=reason) for one in record.evidence)
        return record.but(evidence=evidence)

    return change


def test_a_variant_is_idle_where_no_trial_of_either_side_had_use_for_it() -> None:
    study = a_study()
    both = {"baseline": idle("no log"), FAST: idle("no log")}
    assert the(study, records_of(study, changes=both)).idle == "no log"
    assert the(study, records_of(study, changes={FAST: idle("no log")})).idle == ""
    once = {**both, FAST: in_blocks({0, 1}, idle("no log"))}
    assert the(study, records_of(study, changes=once)).idle == ""
    assert the(study, records_of(study)).idle == ""


def test_one_reading_breaks_no_guard() -> None:
    goal = Goal(guards=(Guard(text="p99_ms <= 1.0x", metric="p99_ms", bound=1.0, relative=True),))
    study = a_study(blocks=1, goal=goal)
    records = records_of(study, {FAST: 0.5})
    found = the(study, records, sequential=True)
    assert [guard.state for guard in found.guards] == [Kept.UNDECIDED]
    assert found.verdict is Verdict.INCONCLUSIVE and not left_out(study, records)


def test_faster_stands_in_a_sequential_run_only_beyond_the_margin() -> None:
    study = a_study(blocks=12, goal=Goal(margin=0.05))
    near, far = records_of(study, {FAST: 1.045}), records_of(study, {FAST: 1.2})
    assert the(study, near, sequential=True).verdict is Verdict.FASTER and not left_out(study, near)
    assert the(study, far, sequential=True).verdict is Verdict.FASTER and left_out(study, far)
    assert left_out(study, records_of(study, {FAST: 1.0}))


@pytest.mark.parametrize("blocks", [2, 5])
def test_fewer_than_six_blocks_give_no_verdict(blocks: int) -> None:
    study = a_study(blocks=blocks)
    found = the(study, records_of(study, {FAST: 2.0}))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_PAIRS)
    assert found.blocks_more == 6 - blocks


def test_no_variant_is_faster_than_a_baseline_that_did_not_hold() -> None:
    study = a_study(blocks=8)
    changes = {"baseline": in_blocks({3}, broken("sums differ"))}
    found = the(study, records_of(study, {FAST: 1.5}, changes))
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.BASELINE_BROKEN)
    assert left_out(study, records_of(study, {FAST: 1.5}, changes))


def test_costs_of_a_sequential_run_have_its_intervals() -> None:
    study = a_study(blocks=8)
    records = records_of(study, {FAST: 1.5})
    (once, looked) = (the(study, records, sequential).cost("p99_ms") for sequential in (False, True))
    assert once is not None and looked is not None and once.low is not None and looked.low is not None
    assert looked.low < once.low


RUNS = 200


@pytest.fixture
def without_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many more blocks are needed takes most of the time, and decides nothing."""
    monkeypatch.setattr(effects, "outlook", lambda *_: Outlook())


def few_enough(alarms: int, runs: int) -> bool:
    """Whether so many alarms come up in one of a thousand instruments that raise 5 % of them."""
    return bool(stats.binom.sf(alarms - 1, runs, 0.05) > 1e-3)


@pytest.mark.usefixtures("without_estimates")
@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize(
    ("interval", "blocks", "guards"),
    [(Interval.STUDENT, 6, ()), (Interval.STUDENT, 6, (GUARD,)), (Interval.SIGNED_RANK, 10, ())],
)
def test_chance_alone_gives_a_verdict_in_one_of_twenty_runs_at_most(
    name: str, interval: Interval, blocks: int, guards: Guards
) -> None:
    random = np.random.default_rng(41)
    alarms = sum(false_alarm(NOISES[name], random, blocks, interval, guards) for _ in range(RUNS))
    assert few_enough(alarms, RUNS), f"{alarms} of {RUNS}"


@pytest.mark.usefixtures("without_estimates")
@pytest.mark.parametrize("name", NOISES)
def test_chance_alone_ends_one_of_twenty_sequential_runs_at_most(name: str) -> None:
    random = np.random.default_rng(42)
    alarms = sum(false_alarm(NOISES[name], random, 12, Interval.ANYTIME) for _ in range(RUNS // 5))
    assert few_enough(alarms, RUNS // 5), f"{alarms} of {RUNS // 5}"


@pytest.mark.parametrize(("speed", "carried"), [(1.03, 2), (1.5, 0)])
def test_a_verdict_that_few_blocks_carry_says_so(speed: float, carried: int) -> None:
    study = a_study(blocks=16)
    found = the(study, records_of(study, {FAST: speed}, trial_sd=0.03))
    assert (found.verdict, found.carried_by) == (Verdict.FASTER, carried)
    told = remark(found, analyse(study, a_run(study), records_of(study)))
    assert ("2 of its 16 blocks carry that" in told) == bool(carried)
