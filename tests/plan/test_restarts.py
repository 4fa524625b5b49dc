"""Restarts come before what is timed, in trials of few rounds, the same for all variants.
Counted trials come when the timed blocks are over. Hosts of a fleet carry out the blocks of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.errors import BaselineFailed
from dbdyno.host.fingerprint import Host
from dbdyno.kinds.registry import ask_for
from dbdyno.layers.setup import Running
from dbdyno.plan import restarts
from dbdyno.plan.restarts import LONGEST_SHARE, SHORTEST_SHARE, counted_trials, restart_trials
from dbdyno.records.record import Check, Outcome, Record, Recovery
from dbdyno.records.run import FleetHost, Run
from dbdyno.study import TRIALS_MAX, Goal, Restarts, Study, Workload
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
from tests.analyse.factory import a_run, a_study, ended, records_of
from tests.fakes import Stages, make_run, make_study
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


LEVELS = {"config.page_cache": ["2k", "64k", "4k"]}
COUNTED_STUDY = a_study(LEVELS, blocks=2, aa=True, goal=Goal(counted=True))


def next_trials(study: Study, records: Sequence[Record]) -> Sequence[Trial]:
    return ask_for(a_run(study))(study, a_run(study), records)


def counted_record(trial: Trial, timed: Record) -> Record:
    where = {"trial": trial.index, "block": trial.block, "variant": trial.variant.name}
    return timed.but(**where)


def test_work_is_counted_when_the_last_block_is_over() -> None:
    records = records_of(COUNTED_STUDY)
    for done in range(len(records)):
        assert not any(trial.counts_instructions for trial in next_trials(COUNTED_STUDY, records[:done]))
    trials = next_trials(COUNTED_STUDY, records)
    assert all(trial.counts_instructions and trial.block == NO_BLOCK for trial in trials)
    # The twin is the baseline once more.
    assert [trial.variant.name for trial in trials] == [
        "baseline",
        "config.page_cache=64k",
        "config.page_cache=4k",
    ]
    assert trials_in_all(COUNTED_STUDY) == trial_count(COUNTED_STUDY) + len(trials)


def test_a_run_that_was_cut_short_goes_on_with_what_is_not_counted() -> None:
    records = records_of(COUNTED_STUDY)
    first, *rest = next_trials(COUNTED_STUDY, records)
    done = counted_record(first, records[0])
    assert next_trials(COUNTED_STUDY, [*records, done]) == tuple(rest)
    cut = done.but(whole=False)
    assert next_trials(COUNTED_STUDY, [*records, cut]) == (first, *rest)
    everything = [*records, done, *(counted_record(trial, records[0]) for trial in rest)]
    assert next_trials(COUNTED_STUDY, everything) == ()


def test_a_run_with_more_blocks_times_them_and_counts_nothing_twice() -> None:
    records = records_of(COUNTED_STUDY)
    counted = [counted_record(trial, records[0]) for trial in next_trials(COUNTED_STUDY, records)]
    longer = COUNTED_STUDY.but(blocks=3)
    more = next_trials(longer, [*records, *counted])
    assert {trial.block for trial in more} == {2}
    assert not {trial.index for trial in more} & {record.trial for record in counted}
    assert min(record.trial for record in counted) >= TRIALS_MAX
    assert next_trials(longer, [*records_of(longer), *counted]) == ()


def test_a_variant_without_a_speed_is_not_counted() -> None:
    records = records_of(COUNTED_STUDY, changes={"config.page_cache=4k": ended(Outcome.BLOCKED, "capped")})
    assert "config.page_cache=4k" not in {
        trial.variant.name for trial in counted_trials(COUNTED_STUDY, records)
    }


def test_a_study_that_does_not_ask_for_it_counts_nothing() -> None:
    plain = a_study(LEVELS, blocks=2)
    assert next_trials(plain, records_of(plain)) == ()


HOSTS = ("a", "b", "c")


def run_on(study: Study, *hosts: str) -> Run:
    return make_run(study).but(fleet=tuple(FleetHost(name=name, host=Host(name=name)) for name in hosts))


def record_of_fleet(trial: Trial, run: Run, outcome: Outcome = Outcome.MEASURED) -> Record:
    return Record(
        run=run.run,
        trial=trial.index,
        block=trial.block,
        position=trial.position,
        variant=trial.variant.name,
        levels=trial.variant.levels,
        host="here",
        started_unix_s=1.0,
        finished_unix_s=2.0,
        outcome=outcome,
    )


def carried_out_of_fleet(study: Study, run: Run, host: str, begun: list[Record]) -> list[Trial]:
    """All that a host is asked for, one trial at a time, after these records of all hosts."""
    done, trials = list(begun), list[Trial]()
    while asked := restarts.ask_of_host(host, study, run, done):
        trials.append(asked[0])
        done.append(record_of_fleet(asked[0], run))
    return trials


def test_hosts_together_run_each_trial_of_the_run_once() -> None:
    study = make_study(1, 2, 3, blocks=12)
    run = run_on(study, *HOSTS)
    alone = run.but(fleet=())
    whole, done = list[Trial](), list[Record]()
    while asked := ask_for(alone)(study, alone, done):
        whole += asked
        done += [record_of_fleet(trial, alone) for trial in asked]
    by_hosts = [trial for host in HOSTS for trial in carried_out_of_fleet(study, run, host, [])]
    assert sorted(by_hosts, key=lambda trial: trial.index) == whole


def test_a_host_has_whole_pairs_and_all_advance_together() -> None:
    run = run_on(make_study(1, 2, blocks=12), *HOSTS)
    assert restarts.blocks_of("b", run) == (2, 3, 8, 9)
    assert [run.pair_on_host(block) for block in restarts.blocks_of("b", run)] == [0, 0, 1, 1]


def test_what_other_hosts_measured_changes_nothing_of_what_a_host_does() -> None:
    study = make_study(1, 2, blocks=12)
    run = run_on(study, *HOSTS)
    of_others = [
        record_of_fleet(trial, run, Outcome.FAILED) for trial in carried_out_of_fleet(study, run, "a", [])
    ]
    assert carried_out_of_fleet(study, run, "b", of_others) == carried_out_of_fleet(study, run, "b", [])


def test_a_baseline_that_fails_on_one_host_ends_the_run_there_alone() -> None:
    study = make_study(1, 2, blocks=12)
    run = run_on(study, *HOSTS)
    first = next(t for t in restarts.ask_of_host("b", study, run, []) if t.variant.name == "baseline")
    failed = [record_of_fleet(first, run, Outcome.FAILED)]
    with pytest.raises(BaselineFailed):
        restarts.ask_of_host("b", study, run, failed)
    assert restarts.ask_of_host("a", study, run, failed)
