"""What survives: losses are counted, and that none was seen is only as good as the rounds and the control."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.model import Analysis, Kept, Reason, Verdict
from dbdyno.analyse.restarts import ByAct, survival, with_frontier
from dbdyno.findings import analyse
from dbdyno.records.record import Loss, Outcome, Record
from dbdyno.study import DURABLE, Goal
from dbdyno.study.designs import CONTROL
from dbdyno.study.soak import Act
from tests.analyse.factory import a_run
from tests.analyse.restarts_cases import CONTROLLED, FAST, LOST, STUDY, TIMED, analysed, kept, record_of


def guard_of(analysis: Analysis) -> tuple[Kept, Verdict | None]:
    [fast] = [variant for variant in analysis.variants if variant.name == FAST]
    [found] = [guard for guard in fast.guards if guard.metric == DURABLE]
    return found.state, fast.verdict


def test_a_faster_variant_counts_only_if_no_cut_took_anything_along() -> None:
    all_kept = analysed(record_of(0, "baseline", kept()), record_of(1, FAST, kept(), kept()), CONTROLLED)
    assert guard_of(all_kept) == (Kept.KEPT, Verdict.FASTER)
    lossy = analysed(record_of(0, "baseline", kept()), record_of(1, FAST, kept(), LOST), CONTROLLED)
    assert guard_of(lossy) == (Kept.BROKEN, Verdict.BROKEN)
    damaged = kept(damage="the server did not start", ready_s=None, permits=Loss.DATA)
    assert guard_of(analysed(record_of(1, FAST, damaged), CONTROLLED)) == (Kept.BROKEN, Verdict.BROKEN)


def test_no_variant_on_the_frontier_is_slower_and_loses_more_than_another() -> None:
    def frontier(*restarts: Record) -> tuple[str, ...]:
        found = analysed(*restarts, CONTROLLED).survival
        assert found is not None
        return found.frontier

    spared, lossy = record_of(0, "baseline", kept()), record_of(1, FAST, kept(), LOST)
    assert frontier(spared, lossy) == ("baseline", FAST)
    damaged = kept(damage="the server did not start", permits=Loss.DATA)
    assert frontier(record_of(0, "baseline", LOST), record_of(1, FAST, damaged)) == ("baseline", FAST)
    assert frontier(record_of(0, "baseline", LOST), lossy) == (FAST,), "as much lost, and slower"
    assert frontier(spared, record_of(1, FAST, kept())) == (), "nothing was lost, so nothing is against speed"
    assert frontier(record_of(0, "baseline", LOST)) == ("baseline",), "nobody knows what the other loses"


def test_a_difference_that_is_not_shown_beats_nothing() -> None:
    found = survival(STUDY, [record_of(0, "baseline", kept()), record_of(1, FAST, LOST)])
    assert found is not None
    assert with_frontier(found, {"baseline": 0.0, FAST: 0.0}).frontier == ("baseline",)


def test_what_the_settings_do_not_permit_breaks_a_variant_without_any_guard() -> None:
    study = STUDY.but(goal=Goal())
    fault = LOST.but(permits=Loss.NOTHING)
    found = analyse(study, a_run(study), [*TIMED, record_of(1, FAST, kept(), fault), CONTROLLED])
    [fast] = [variant for variant in found.variants if variant.name == FAST]
    assert fast.verdict is Verdict.BROKEN
    assert "7 of 100 acknowledged" in fast.cause
    of_baseline = analyse(study, a_run(study), [*TIMED, record_of(0, "baseline", fault), CONTROLLED])
    assert of_baseline.answer.baseline_broken


def test_an_engine_that_dies_before_the_act_is_a_fault() -> None:
    died = record_of(1, FAST, kept(), outcome=Outcome.BROKEN, cause="the server died under the load")
    [fast] = [one for one in analysed(died, CONTROLLED).variants if one.name == FAST]
    assert (fast.verdict, fast.cause) == (Verdict.BROKEN, "the server died under the load")


def test_without_a_power_cut_nobody_knows() -> None:
    assert guard_of(analysed()) == (Kept.UNREAD, Verdict.INCONCLUSIVE)
    killed = record_of(1, FAST, kept(act=Act.KILL))
    assert guard_of(analysed(killed)) == (Kept.UNREAD, Verdict.INCONCLUSIVE)
    [fast] = [variant for variant in analysed(killed).variants if variant.name == FAST]
    assert fast.reason is Reason.GUARD


def test_restarts_have_no_speed() -> None:
    bare, with_restarts = analysed(), analysed(record_of(1, FAST, LOST), CONTROLLED)
    assert [one.record.trial for one in with_restarts.trials] == [one.record.trial for one in bare.trials]
    assert [one.effect for one in with_restarts.variants] == [one.effect for one in bare.variants]
    assert with_restarts.counted == ()


def test_losses_are_told_in_all_and_at_most() -> None:
    worse = kept(permits=Loss.COMMITS, lost=20, lost_ms=80.0, full_speed_s=0.4)
    found = survival(STUDY, [record_of(1, FAST, kept(), LOST), record_of(2, FAST, worse), CONTROLLED])
    assert found is not None
    [act] = found.variants[1].acts
    assert (act.rounds, act.losing, act.damaged, act.lost, act.lost_most) == (3, 2, 0, 27, 20)
    assert (act.acknowledged, act.lost_ms_most, act.ready_s) == (300, 80.0, 1.5)
    assert found.variants[1].permits is Loss.COMMITS
    assert found.variants[0].acts == (), "the baseline was not tried"


def test_the_next_load_tells_how_soon_there_was_full_speed() -> None:
    """What the load of a round needed follows the restart of the round before it in its trial."""
    rounds = [kept(full_speed_s=seconds) for seconds in (9.0, 0.2, 0.4, 0.3)]
    found = survival(STUDY, [record_of(1, FAST, *rounds)])
    assert found is not None
    assert found.variants[1].acts[0].full_speed_s == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("restarts", "said"),
    [
        ((record_of(1, FAST, kept()), CONTROLLED), ""),
        ((record_of(1, FAST, LOST),), ""),
        ((record_of(1, FAST, kept()),), "no setup was tried"),
        (
            (record_of(1, FAST, kept()), record_of(9, CONTROL, kept(permits=Loss.DATA))),
            "nothing was lost even",
        ),
        (
            (
                record_of(1, FAST, kept()),
                record_of(9, CONTROL, outcome=Outcome.BLOCKED, cause="needs root"),
            ),
            "could not be tried: needs root",
        ),
    ],
)
def test_cuts_prove_something_only_where_something_could_be_lost(
    restarts: tuple[Record, ...], said: str
) -> None:
    found = survival(STUDY, restarts)
    assert found is not None
    assert said in found.unproven
    assert bool(found.unproven) is bool(said)


def test_kills_alone_need_no_control() -> None:
    found = survival(STUDY, [record_of(1, FAST, kept(act=Act.KILL), kept(act=Act.STOP, stop_s=0.5))])
    assert found is not None
    assert (found.control, found.unproven) == (None, "")
    assert [one.act for one in found.variants[1].acts] == [Act.STOP, Act.KILL]


def test_a_run_without_restarts_says_nothing_of_them() -> None:
    assert analysed().survival is None
    assert "survival" not in analysed().model_dump(mode="json")


def test_only_what_is_not_permitted_is_a_fault() -> None:
    assert kept().fault == LOST.fault == ""
    assert "7 of 100 acknowledged" in LOST.but(permits=Loss.NOTHING).fault
    damaged = kept(damage="balances_equal: 3, 4")
    assert "balances_equal" in damaged.fault
    assert "balances_equal" in damaged.but(permits=Loss.COMMITS).fault
    assert damaged.but(permits=Loss.DATA).fault == ""


def by_act(rounds: int, losing: int = 0, damaged: int = 0) -> ByAct:
    return ByAct(
        act=Act.CUT,
        rounds=rounds,
        losing=losing,
        damaged=damaged,
        acknowledged=0,
        lost=losing,
        lost_most=losing,
        lost_ms_most=0.0,
    )


@given(st.integers(1, 5000))
def test_the_bound_is_what_luck_would_still_allow(rounds: int) -> None:
    """With a share so large, no loss in so many rounds would come in one case of 20."""
    bound = by_act(rounds).share_most
    assert (1.0 - bound) ** rounds == pytest.approx(0.05)
    assert by_act(rounds + 1).share_most < bound


def test_after_a_loss_there_is_no_bound() -> None:
    assert by_act(10, losing=1).share_most == by_act(10, damaged=1).share_most == 1.0
