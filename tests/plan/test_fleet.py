"""Hosts of a fleet carry out the blocks of one run: each its own pairs, and together all of them once."""

from __future__ import annotations

import pytest

from dbdyno.errors import BaselineFailed
from dbdyno.host.fingerprint import Host
from dbdyno.kinds.registry import ask_for
from dbdyno.plan import restarts
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import FleetHost, Run
from dbdyno.study import Study
from dbdyno.study.trials import Trial
from tests.fakes import make_run, make_study

HOSTS = ("a", "b", "c")


def run_on(study: Study, *hosts: str) -> Run:
    return make_run(study).but(fleet=tuple(FleetHost(name=name, host=Host(name=name)) for name in hosts))


def record_of(trial: Trial, run: Run, outcome: Outcome = Outcome.MEASURED) -> Record:
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


def carried_out(study: Study, run: Run, host: str, begun: list[Record]) -> list[Trial]:
    """All that a host is asked for, one trial at a time, after these records of all hosts."""
    done, trials = list(begun), list[Trial]()
    while asked := restarts.ask_of_host(host, study, run, done):
        trials.append(asked[0])
        done.append(record_of(asked[0], run))
    return trials


def test_hosts_together_run_each_trial_of_the_run_once() -> None:
    study = make_study(1, 2, 3, blocks=12)
    run = run_on(study, *HOSTS)
    alone = run.but(fleet=())
    whole, done = list[Trial](), list[Record]()
    while asked := ask_for(alone)(study, alone, done):
        whole += asked
        done += [record_of(trial, alone) for trial in asked]
    by_hosts = [trial for host in HOSTS for trial in carried_out(study, run, host, [])]
    assert sorted(by_hosts, key=lambda trial: trial.index) == whole


def test_a_host_has_whole_pairs_and_all_advance_together() -> None:
    run = run_on(make_study(1, 2, blocks=12), *HOSTS)
    assert restarts.blocks_of("b", run) == (2, 3, 8, 9)
    assert [run.pair_on_host(block) for block in restarts.blocks_of("b", run)] == [0, 0, 1, 1]


def test_what_other_hosts_measured_changes_nothing_of_what_a_host_does() -> None:
    study = make_study(1, 2, blocks=12)
    run = run_on(study, *HOSTS)
    of_others = [record_of(trial, run, Outcome.FAILED) for trial in carried_out(study, run, "a", [])]
    assert carried_out(study, run, "b", of_others) == carried_out(study, run, "b", [])


def test_a_baseline_that_fails_on_one_host_ends_the_run_there_alone() -> None:
    study = make_study(1, 2, blocks=12)
    run = run_on(study, *HOSTS)
    first = next(t for t in restarts.ask_of_host("b", study, run, []) if t.variant.name == "baseline")
    failed = [record_of(first, run, Outcome.FAILED)]
    with pytest.raises(BaselineFailed):
        restarts.ask_of_host("b", study, run, failed)
    assert restarts.ask_of_host("a", study, run, failed)
