"""Restarts come before what is timed, in trials of few rounds, the same for all variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.kinds.registry import ask_for
from dbdyno.layers.setup import Running
from dbdyno.plan.restarts import LONGEST_SHARE, SHORTEST_SHARE, restart_trials
from dbdyno.records.record import Check, Outcome, Record, Recovery
from dbdyno.study import Restarts, Study, Workload
from dbdyno.study.designs import (
    CONTROL,
    CONTROL_CUTS,
    ROUNDS_MOST,
    WRITING,
    restart_trial_count,
    restarted,
    trial_count,
    trials_in_all,
)
from dbdyno.study.soak import OF_POWER, Act
from dbdyno.study.trials import NO_BLOCK, Phase, Trial
from dbdyno.trial.acts.endings import Acted
from dbdyno.trial.bench import Bench
from tests.analyse.factory import a_run, a_study, records_of
from tests.fakes import Stages, make_study
from tests.spine import carry_out, leftovers

RESTARTS = Restarts(
    power_cuts=12, torn_pages=3, kills=6, stops=2, load_s=2.0, control={"config.forced_writes": False}
)
STUDY = a_study(blocks=2, aa=True).but(restarts=RESTARTS)


def record_of(trial: Trial, outcome: Outcome = Outcome.MEASURED, whole: bool = True) -> Record:
    where = {"trial": trial.index, "block": trial.block, "variant": trial.variant.name}
    ended = {"outcome": outcome, "whole": whole, "phases": ()}
    return records_of(a_study(blocks=1))[0].but(**where, **ended)


def carried_out(study: Study) -> list[Trial]:
    """All trials of restarts, each of which goes well."""
    records: list[Record] = []
    done: list[Trial] = []
    while trials := restart_trials(study, a_run(study), records):
        done += trials
        records += [record_of(trial) for trial in trials]
    return done


def acts(trials: Sequence[Trial]) -> Counter[Act | None]:
    return Counter(phase.then for trial in trials for phase in trial.phases)


def test_each_variant_meets_every_act_as_often_as_the_study_says() -> None:
    trials = carried_out(STUDY)
    assert len(trials) == restart_trial_count(STUDY) == 3 * 2 + 1
    assert len({trial.index for trial in trials}) == len(trials)
    assert all(
        trial.restarts and trial.block == NO_BLOCK and not trial.counts_instructions for trial in trials
    )
    for name in ("baseline", "config.page_cache=64k"):
        mine = [trial for trial in trials if trial.variant.name == name]
        assert acts(mine) == {Act.CUT: 12, Act.TEAR: 3, Act.KILL: 6, Act.STOP: 2}
        assert max(len(trial.phases) for trial in mine) == ROUNDS_MOST
        assert len({phase.name for trial in mine for phase in trial.phases}) == 23


def test_all_variants_meet_the_same_moments() -> None:
    by_name: dict[str, list[tuple[object, ...]]] = {}
    for trial in carried_out(STUDY):
        by_name.setdefault(trial.variant.name, []).append(trial.phases)
    assert by_name["baseline"] == by_name["config.page_cache=64k"]
    moments = [phase.duration_s for trial in carried_out(STUDY) for phase in trial.phases]
    assert SHORTEST_SHARE * 2.0 <= min(moments) < max(moments) <= LONGEST_SHARE * 2.0
    other = a_run(STUDY).but(seed=12)
    first = [restart_trials(STUDY, run, [])[0].phases for run in (a_run(STUDY), other)]
    assert first[0] != first[1]


def test_the_control_must_lose_by_power_cuts_alone() -> None:
    [control] = [trial for trial in carried_out(STUDY) if trial.variant.name == CONTROL]
    assert control.variant.levels == {**STUDY.baseline, "config.forced_writes": False}
    assert 0 < len(control.phases) <= CONTROL_CUTS
    assert {phase.then for phase in control.phases} == {Act.CUT}
    without_power = RESTARTS.but(power_cuts=0, torn_pages=0)
    kills = STUDY.but(restarts=without_power)
    assert all(trial.variant.name != CONTROL for trial in carried_out(kills))
    assert not acts(carried_out(kills)).keys() & OF_POWER


def test_restarts_come_before_what_is_timed() -> None:
    ask, run = ask_for(a_run(STUDY)), a_run(STUDY)
    records = [record_of(trial) for trial in carried_out(STUDY)]
    for done in range(len(records)):
        assert all(trial.restarts for trial in ask(STUDY, run, records[:done]))
    timed = ask(STUDY, run, records)
    assert timed
    assert {trial.block for trial in timed} == {0}
    assert ask(STUDY, run, [*records, *records_of(STUDY)]) == ()
    assert trials_in_all(STUDY) == trial_count(STUDY) + len(records)


def test_a_run_that_was_cut_short_goes_on_where_it_was() -> None:
    first, *rest = restart_trials(STUDY, a_run(STUDY), [])
    assert restart_trials(STUDY, a_run(STUDY), [record_of(first)]) == tuple(rest)
    assert restart_trials(STUDY, a_run(STUDY), [record_of(first, whole=False)]) == (first, *rest)


@pytest.mark.parametrize("outcome", [Outcome.BLOCKED, Outcome.FAILED])
def test_a_variant_that_could_not_be_tried_is_not_tried_again(outcome: Outcome) -> None:
    first = restart_trials(STUDY, a_run(STUDY), [])
    records = [
        record_of(trial, outcome if trial.variant.name == "baseline" else Outcome.MEASURED) for trial in first
    ]
    later = restart_trials(STUDY, a_run(STUDY), records)
    assert [trial.variant.name for trial in later] == ["config.page_cache=64k"]


def test_a_study_without_restarts_has_none() -> None:
    study = a_study()
    assert restart_trials(study, a_run(study), []) == ()
    assert restart_trial_count(study) == 0


def test_a_load_that_keeps_no_ledger_gives_way_to_one_that_writes() -> None:
    assert restarted(STUDY) == STUDY
    for load in (Workload(name="read_only"), Workload(name="tpcb", options={"select_only": True})):
        assert restarted(STUDY.but(workload=load)).workload == WRITING
    factors = {"workload.clients": [1, 8]}
    study = a_study(factors).but(restarts=RESTARTS, workload=Workload(name="read_only"))
    assert all("workload.clients" not in trial.variant.levels for trial in carried_out(study))


KILLS = Restarts(kills=2, load_s=0.5)


def acting(monkeypatch: pytest.MonkeyPatch, damage: str = "") -> list[Phase]:
    """Acts of which nothing is done, and what they found; returns the phases that they ended."""
    ended: list[Phase] = []

    def act(running: Running, phase: Phase, bench: Bench, undo: ExitStack) -> Acted:
        assert phase.then is not None
        ended.append(phase)
        recovery = Recovery(act=phase.then, ready_s=0.1, damage=damage)
        return Acted(running, recovery, (Check(name="balances_equal", holds=not damage),))

    monkeypatch.setattr("dbdyno.trial.acts.act_on", act)
    return ended


def test_engines_are_restarted_before_anything_is_timed(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, progress = acting(monkeypatch), Stages()
    records = carry_out(make_study(1, 2, blocks=1, restarts=KILLS), progress)
    assert [record.of_restarts for record in records] == [True, True, False, False]
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 4
    assert [phase.then for phase in ended] == [Act.KILL] * 4
    restarted = records[0]
    assert [recovery.ready_s for recovery in restarted.recoveries] == [0.1, 0.1]
    assert restarted.tally is None
    assert [stage for trial, stage in progress.seen if trial == restarted.trial] == [
        "prepare", "verify", "restart", "record", "restart", "record", "restore",
    ]  # fmt: skip
    assert leftovers() == []


def test_nothing_more_is_tried_on_data_that_are_not_sound(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = acting(monkeypatch, damage="balances_equal: 3, 4")
    records = carry_out(make_study(1, 2, blocks=1, restarts=KILLS))
    assert len(ended) == 2, "the second round of each variant was left out"
    assert [record.outcome for record in records] == [Outcome.BROKEN] * 2 + [Outcome.MEASURED] * 2
    assert "after a kill, balances_equal" in records[0].cause
