"""The spine with a fake engine: order, outcomes, resuming, and a host that is always restored.

`tests/test_simulation.py` interrupts and kills at every step. The few real interruptions and kills here show
that its model is true.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno import interrupts
from dbdyno.driver.job import Job
from dbdyno.driver.load import Invariant
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import BaselineFailed, DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.host import paths
from dbdyno.host.journal import open_journal, replay_abandoned
from dbdyno.layers.setup import Running
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.records.place import store_url
from dbdyno.records.record import Check, Doubt, Outcome, Record, Recovery
from dbdyno.records.store import Store
from dbdyno.run import TrialSlot, carried_out, run_trial
from dbdyno.study import Study
from dbdyno.study.soak import Act
from dbdyno.study.trials import Phase, Purpose, Trial
from dbdyno.trial.acts.endings import Acted
from dbdyno.trial.bench import Bench
from tests.fakes import FakeEngine, FakeLoad, Stages, make_bench, make_run, make_study
from tests.fakes import carried_out as all_records
from tests.spine import beside, carry_out, in_turn, leftovers, two_phases, with_images

STAGES = ["prepare", "verify", "drive", "check", "record", "restore"]


@pytest.fixture(autouse=True)
def no_end_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test's interruption is the first one."""
    monkeypatch.setattr(interrupts._Ending, "begun", False)


def stored() -> list[Record]:
    with Store(f"sqlite:///{paths.data() / 'dyno.sqlite'}") as store:
        return store.records("first")


def test_every_trial_goes_through_the_stages_in_order(homes: Path) -> None:
    progress = Stages()
    records = carry_out(make_study(1, 2, blocks=2), progress)
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 4
    assert progress.seen == [(trial, stage) for trial in range(4) for stage in STAGES]
    assert leftovers() == []


def test_a_record_holds_all_evidence(homes: Path) -> None:
    record = next(record for record in carry_out(make_study(1, 2)) if record.levels == {"config.speed": 2})
    [evidence] = record.evidence
    assert (evidence.requested, evidence.in_effect) == ("2", True)
    assert evidence.effective is not None
    assert (evidence.effective.value, evidence.effective.source) == ("2", "SHOW speed")
    assert evidence.exercised is not None
    assert record.tally is not None
    assert record.tally.operations == 2000
    assert [(check.name, check.holds) for check in record.checks] == [
        ("operations", True),
        ("clients", True),
        ("balances_equal", True),
    ]
    assert record.reset["way"] in ("reflink", "copy")
    assert set(record.stages_s) == set(STAGES)
    assert record.observation is not None
    assert {"server_cpu_user_s", "steal_s", "dyno_cpu_s", "resident_bytes_max"} <= set(
        record.observation.totals
    )
    assert stored()[record.trial] == record


def test_pristine_data_are_made_once_per_creation_settings(homes: Path) -> None:
    engine = FakeEngine()
    carry_out(with_images(make_study(1, 2, blocks=2), 1), engine=engine)
    assert engine.initialised == [{}]


def test_pairs_of_blocks_take_the_images_in_turn(homes: Path) -> None:
    engine = FakeEngine()
    records = carry_out(with_images(make_study(1, 2, blocks=9), 3), engine=engine)
    assert {(record.block, record.reset["image"]) for record in records} == {
        (0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 0), (7, 0), (8, 1),
    }  # fmt: skip
    assert len(engine.initialised) == 3


@pytest.mark.parametrize(("duration_s", "images"), [(3600.0, 6), (0.0001, 1)])
def test_further_images_are_made_where_they_cost_little(homes: Path, duration_s: float, images: int) -> None:
    engine, study = FakeEngine(), make_study(1, 2, blocks=12)
    workload = study.workload.but(duration_s=duration_s, warmup_s=0.0)
    records = carry_out(study.but(workload=workload), engine=engine)
    assert len({record.reset["image"] for record in records}) == len(engine.initialised) == images


def test_pristine_data_differ_by_what_is_fixed_at_creation(homes: Path) -> None:
    engine = FakeEngine()
    carry_out(with_images(make_study(4096, 8192, factor="config.page", blocks=2), 1), engine=engine)
    assert sorted(engine.initialised, key=str) == [{"page": 4096}, {"page": 8192}]


@pytest.mark.parametrize(("run_options", "made"), [(frozenset[str](), 2), (frozenset({"effort"}), 1)])
def test_options_of_the_run_alone_share_pristine_data(
    homes: Path, run_options: frozenset[str], made: int
) -> None:
    engine, study = FakeEngine(), make_study(1, 5, factor="workload.effort", blocks=1)
    options = {"rows": 3, "effort": 1}
    workload = study.workload.but(options=options, run_options=run_options)
    carry_out(study.but(workload=workload), engine=engine)
    assert len(engine.initialised) == made


def test_a_capped_setting_is_blocked_with_both_values(homes: Path) -> None:
    records = carry_out(make_study(1, 200, blocks=1))
    [blocked] = [record for record in records if record.outcome is Outcome.BLOCKED]
    assert blocked.cause == "config.speed: asked for 200, the server runs with 100"
    assert blocked.tally is None
    assert blocked.evidence[0].in_effect is False


def test_a_server_that_does_not_start_fails_that_variant_alone(homes: Path) -> None:
    records = carry_out(make_study(1, 2, blocks=2), engine=FakeEngine(fails_to_start_with_speed=2))
    outcomes = {(record.levels["config.speed"], record.outcome) for record in records}
    assert outcomes == {(1, Outcome.MEASURED), (2, Outcome.FAILED)}
    failed = next(record for record in records if record.outcome is Outcome.FAILED)
    assert failed.server_log == "[ERROR] speed refused"
    assert leftovers() == []


def test_a_baseline_that_does_not_start_ends_the_run_and_names_the_setting(homes: Path) -> None:
    with pytest.raises(BaselineFailed) as ended:
        carry_out(make_study(1, 2, 3, 4, blocks=2), engine=FakeEngine(fails_to_start_with_speed=1))
    told = "the baseline, with config.speed = 1, could not be run: the server did not start: speed refused"
    assert (ended.value.message, ended.value.exit_code) == (told, 3)
    assert [record.variant for record in stored() if record.outcome is Outcome.FAILED] == ["baseline"]
    assert stored()[-1].variant == "baseline"
    assert {record.block for record in stored()} == {0}
    assert leftovers() == []


def test_a_speed_that_the_driver_set_is_refused(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = FakeLoad.run

    def limited(self: FakeLoad, job: Job) -> Tally:
        tally = fast(self, job)
        saturated = "thread 0 was busy" if tally.operations > 1000 else None
        return tally.but(saturated=saturated)

    monkeypatch.setattr(FakeLoad, "run", limited)
    records = carry_out(make_study(1, 2, blocks=1))
    refused = next(record for record in records if record.levels["config.speed"] == 2)
    assert (refused.outcome, refused.cause) == (Outcome.FAILED, "thread 0 was busy")
    assert "workload.threads" in refused.remedy
    assert next(record for record in records if record is not refused).outcome is Outcome.MEASURED


def test_a_broken_invariant_takes_the_speed_away(homes: Path) -> None:
    with pytest.raises(DynoError, match="no trial of the first block could be measured"):
        carry_out(make_study(1, 2, blocks=2), invariant_holds=False)
    assert {record.outcome for record in stored()} == {Outcome.BROKEN}
    assert stored()[0].cause == "balances_equal: 12, 12"
    assert len(stored()) == 2


def kill_server(load: FakeLoad) -> None:
    load.engine.servers[-1].kill()


def kill_server_behind(load: FakeLoad) -> None:
    """As the kernel does for want of memory: the driver meets a socket that nobody serves."""
    load.engine.servers[-1].kill()
    raise DriverFailed("Connection refused", kind="server")


def crash_driver(load: FakeLoad) -> None:
    raise LoadDied("the load process died during `run` (SIGSEGV, Segmentation fault)")


@pytest.mark.parametrize(
    ("on_run", "embedded", "cause", "outcome"),
    [
        (kill_server, False, "the server died under the load", Outcome.BROKEN),
        (
            kill_server_behind,
            False,
            "the server died under the load: Connection refused",
            Outcome.BROKEN,
        ),
        (crash_driver, True, "SIGSEGV", Outcome.BROKEN),
        (crash_driver, False, "SIGSEGV", Outcome.FAILED),
    ],
    ids=[
        "server dies",
        "server dies before the driver asks",
        "embedded engine dies",
        "driver of a server dies",
    ],
)
def test_an_engine_that_dies_under_load_is_broken(
    homes: Path, on_run: Callable[[FakeLoad], None], embedded: bool, cause: str, outcome: Outcome
) -> None:
    with pytest.raises(DynoError):
        carry_out(make_study(1, 2, blocks=1), on_run=on_run, engine=FakeEngine(embedded=embedded))
    assert {record.outcome for record in stored()} == {outcome}
    assert cause in stored()[0].cause
    assert leftovers() == []


def test_a_server_that_is_slow_to_stop_is_measured_with_a_warning(homes: Path) -> None:
    records = carry_out(make_study(1, 2, blocks=1), engine=FakeEngine(slow_to_stop=True))
    assert all(record.outcome is Outcome.MEASURED for record in records)
    assert "did not stop within" in stored()[0].doubts[Doubt.SERVER_LOG]


def interrupted(study: Study, stage: str) -> list[Record]:
    """What is kept of a run that is interrupted as a stage of its second trial begins. It leaves nothing."""

    def interrupt(trial: Trial, now: str) -> None:
        if (trial.index, now) == (1, stage):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        carry_out(study, Stages(interrupt))
    assert leftovers() == []
    assert sleeping_servers() == []
    return stored()


@pytest.mark.parametrize("stage", ["prepare", "restore"])
def test_an_interrupted_run_goes_on_where_it_stopped(homes: Path, stage: str) -> None:
    study = make_study(1, 2, blocks=2)
    kept = interrupted(study, stage)
    # The record is written before the host is restored: an interruption then costs nothing.
    assert [record.trial for record in kept] == ([0, 1] if stage == "restore" else [0])
    resumed = Stages()
    records = carry_out(study, resumed)
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 4
    assert records[: len(kept)] == kept
    assert {trial for trial, _ in resumed.seen} == set(range(len(kept), 4))


@pytest.mark.parametrize("stage", ["drive", "restore"])
def test_a_killed_run_leaves_nothing_after_the_next_start(homes: Path, stage: str) -> None:
    """kill -9 as each stage begins, in the second trial of a real process."""
    child = subprocess.run([sys.executable, "-m", "tests.killed_run", stage], timeout=60, check=False)
    assert child.returncode == -signal.SIGKILL
    replay_abandoned()
    assert leftovers() == []
    assert sleeping_servers() == []
    kept = stored()
    assert [record.trial for record in kept] == ([0, 1] if stage == "restore" else [0])
    records = carry_out(make_study(1, 2, blocks=2))
    assert len(records) == 4
    assert records[: len(kept)] == kept


def sleeping_servers() -> list[int]:
    """The fake servers that still run: processes whose output goes into this test's folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "fd/1").readlink().is_relative_to(paths.runtime()):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_whole_block_without_a_measured_trial_ends_the_run(homes: Path) -> None:
    with pytest.raises(DynoError, match=r"asked for \d00, the server runs with 100"):
        carry_out(make_study(200, 300, blocks=5))
    assert len(stored()) == 2


def test_a_record_is_kept_after_every_phase(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven, told, fast, sound = [], [], FakeLoad.run, FakeLoad.check

    def run(self: FakeLoad, job: Job) -> Tally:
        driven.append(job.duration_s)
        return fast(self, job)

    def check(self: FakeLoad, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        told.append(acknowledged.acknowledged if acknowledged else 0)
        return sound(self, job, acknowledged)

    monkeypatch.setattr(FakeLoad, "run", run)
    monkeypatch.setattr(FakeLoad, "check", check)
    progress = Stages()
    record, kept = two_phases(progress)
    assert driven == [0.5, 1.5]
    # After the pristine data were made, and after each phase: what was acknowledged since then.
    assert told == [0, 1000, 2000]
    assert [stage for _, stage in progress.seen] == [
        "prepare", "verify", "drive", "check", "record", "drive", "check", "record", "restore",
    ]  # fmt: skip
    assert [(one.whole, [phase.name for phase in one.phases]) for one in kept] == [
        (False, ["calm"]),
        (True, ["calm", "storm"]),
    ]
    assert record.outcome is Outcome.MEASURED
    assert [len(phase.checks) for phase in record.phases] == [3, 3]
    assert len(record.checks) == 6
    assert record.load_s == 2.0, "the fake load says of each phase that it took a second"


def test_a_phase_that_fails_leaves_what_came_before_it(homes: Path) -> None:
    loads: list[FakeLoad] = []

    def crash_later(load: FakeLoad) -> None:
        loads.append(load)
        if len(loads) == 2:
            crash_driver(load)

    record, kept = two_phases(on_run=crash_later)
    assert record.outcome is Outcome.FAILED
    assert [phase.tally is not None for phase in record.phases] == [True, False]
    assert record.tally == record.phases[0].tally == kept[0].tally


WATCHED = Phase(name="load", duration_s=0.3, clients=7, watched=True)
RESTING = WATCHED.but(name="control", rests=True)
STOPPING = Phase(name="stop", duration_s=1.0, then=Act.STOP)


def test_a_server_is_watched_under_a_load_of_the_phases_own_clients_and_at_rest(homes: Path) -> None:
    record, _ = two_phases(phases=(WATCHED, RESTING))
    assert record.outcome is Outcome.MEASURED
    loaded, rested = record.phases
    assert loaded.clients == 7 and loaded.tally is not None and loaded.tally.clients == 7
    assert rested.tally is None and rested.checks == ()
    for phase in record.phases:
        assert phase.watched is not None
        assert {"resident_bytes", "heap_bytes", "disk_bytes"} <= phase.watched.series.keys()
    assert rested.watched is not None and rested.watched.seconds[-1] >= 0.3
    # A rest has no speed, so the trial's is still that of its load.
    assert record.tally == loaded.tally


def test_a_server_that_dies_at_rest_was_broken_and_what_was_watched_stays(homes: Path) -> None:
    engine = FakeEngine()

    def die(_trial: Trial, stage: str) -> None:
        if stage == "drive":
            engine.servers[-1].kill()

    study = make_study(1, 2)
    first = make_plan(study, Order(seed=1)).trials[0].but(phases=(RESTING,))
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal, engine)
        record = run_trial(first, bench, lambda _: None, Stages(die))
    assert record.outcome is Outcome.BROKEN and "died while it rested" in record.cause
    assert record.phases[0].watched is not None


@pytest.mark.parametrize("holds", [True, False])
def test_what_is_done_to_a_server_is_recorded_and_what_it_breaks_ends_the_phases(
    homes: Path, monkeypatch: pytest.MonkeyPatch, holds: bool
) -> None:
    def act(running: Running, phase: Phase, _bench: Bench, _undo: ExitStack) -> Acted:
        assert phase.then is Act.STOP
        found = Check(name="balances_equal_after_stop", holds=holds, detail="12, 13")
        return Acted(running, Recovery(act=Act.STOP, stop_s=1.0, ready_s=2.0), (found,))

    monkeypatch.setattr("dbdyno.trial.acts.act_on", act)
    progress = Stages()
    again = WATCHED.but(name="again")
    record, kept = two_phases(progress, (WATCHED, STOPPING, again))
    assert "restart" in [stage for _, stage in progress.seen]
    recovery = record.phases[1].recovery
    assert recovery is not None and (recovery.stop_s, recovery.ready_s) == (1.0, 2.0)
    assert record.ready_s == 0.01, "that of the first start"
    assert [phase.name for phase in record.phases] == ["load", "stop", *(["again"] if holds else [])]
    assert record.outcome is (Outcome.MEASURED if holds else Outcome.BROKEN)
    assert len(kept) == len(record.phases)


def test_a_trial_that_was_cut_between_its_phases_is_run_again(homes: Path) -> None:
    study = make_study(1, 2, blocks=1)
    record, kept = two_phases()
    with Store(store_url()) as store:
        store.add_run(make_run(study))
        store.add_record(kept[0])
    records = carry_out(study)
    assert [one.whole for one in records] == [True, True]
    assert stored() == sorted(records, key=lambda one: one.trial)
    assert stored()[record.trial].started_unix_s > kept[0].started_unix_s


def test_side_by_side_all_servers_are_up_and_the_load_goes_round(homes: Path) -> None:
    progress = Stages()
    records = carry_out(beside(1, 2, 3, blocks=1), progress)
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 3
    stages = [stage for _, stage in progress.seen]
    assert stages == ["prepare", "verify"] * 3 + ["drive"] * 9 + ["check", "record"] * 3 + ["restore"] * 3
    driven = [trial for trial, stage in progress.seen if stage == "drive"]
    rounds = [driven[start : start + 3] for start in (0, 3, 6)]
    assert [sorted(one) for one in rounds] == [[0, 1, 2]] * 3
    assert rounds[2] == rounds[1][::-1], "the second slices run in the reverse order of the first"
    assert [trial for trial, stage in progress.seen if stage == "restore"] == [2, 1, 0]
    for record in records:
        assert record.tally is not None
        assert record.tally.operations == 1000 * int(record.levels["config.speed"])
        assert [check.name for check in record.checks] == [
            "operations",
            "clients",
            "balances_equal",
            "slices",
        ]
        assert set(record.stages_s) == set(STAGES)
    assert leftovers() == []


def test_the_order_of_rounds_is_drawn_anew_for_each_pair_and_block(homes: Path) -> None:
    progress = Stages()
    study = beside(*range(1, 6), blocks=4)
    workload = study.workload.but(duration_s=4.0)
    carry_out(study.but(workload=workload), progress)
    driven = [trial for trial, stage in progress.seen if stage == "drive"]
    rounds = [tuple(trial % 5 for trial in driven[start : start + 5]) for start in range(0, len(driven), 5)]
    assert len(rounds) == 4 * 9
    assert len(set(rounds)) > 25


@pytest.mark.parametrize("purpose", list(Purpose))
def test_a_search_ends_the_loads_of_what_is_hopeless_and_a_confirmation_ends_none(
    homes: Path, purpose: Purpose
) -> None:
    study = beside(1, 2, 3, blocks=1)
    workload = study.workload.but(duration_s=4.0)
    study = study.but(workload=workload)
    run = make_run(study)
    asked: list[set[str]] = []

    def drop(told: Mapping[str, Sequence[int]]) -> frozenset[str]:
        asked.append(set(told))
        return frozenset({"config.speed=2"}) if len(asked) > 3 else frozenset()

    with Store(store_url()) as store, open_journal() as journal:
        store.add_run(run)
        bench = replace(make_bench(study, run, journal), drop=drop)
        trials = [trial.but(purpose=purpose) for trial in make_plan(study, Order(seed=1)).trials]
        records = list(carried_out([TrialSlot(trial, bench, Stages()) for trial in trials], store))
    slices = {record.variant: len(record.tally.slices) for record in records if record.tally is not None}
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 3
    assert [record.purpose for record in records] == [purpose] * 3
    if purpose is Purpose.SEARCH:
        assert slices == {"baseline": 8, "config.speed=2": 2, "config.speed=3": 8}
        assert asked[-1] == {"baseline", "config.speed=3"}
    else:
        assert set(slices.values()) == {8} and not asked
    assert leftovers() == []


def test_a_server_that_fails_beside_others_is_stopped_at_once(homes: Path) -> None:
    alive: list[bool] = []

    def look(trial: Trial, stage: str) -> None:
        if stage == "check":
            alive.extend(server.alive() for server in engine.servers)

    engine = FakeEngine()
    records = carry_out(beside(1, 200, 3, blocks=1), Stages(look), engine)
    assert sorted(record.outcome for record in records) == ["blocked", "measured", "measured"]
    # The first server made the pristine data; one of the three others was blocked.
    assert alive.count(True) == 2 * 2
    assert leftovers() == []


def test_a_server_that_dies_between_slices_breaks_its_own_trial(homes: Path) -> None:
    def die_once(load: FakeLoad) -> None:
        if load.speed == 2:
            raise ServerFailed("the server died")

    records = carry_out(beside(1, 2, 3, blocks=1), on_run=die_once)
    assert {(record.levels["config.speed"], record.outcome) for record in records} == {
        (1, Outcome.MEASURED),
        (2, Outcome.BROKEN),
        (3, Outcome.MEASURED),
    }
    assert leftovers() == []


def test_a_load_that_ends_before_its_last_slice_is_broken(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeLoad, "go_on", lambda load: (load.began.append(0.0), load.run(load.job))[1])
    with pytest.raises(DynoError, match="slices: 1 of 2 slices were driven"):
        carry_out(beside(1, 2, blocks=1))


def test_two_runs_in_turn_have_all_servers_up_and_go_round_in_the_same_slices(homes: Path) -> None:
    alive: list[int] = []

    def look(trial: Trial, stage: str) -> None:
        if stage == "drive":
            alive.append(sum(server.alive() for server in engine.servers))

    engine, progress = FakeEngine(), Stages(look)
    records, again = in_turn(beside(1, 2, blocks=2), progress, engine)
    assert [(one.run, one.block, one.variant) for one in again] == [
        ("again", block, "baseline") for block in range(2)
    ]
    assert {one.run for one in records} == {"first"} and len(records) == 4
    assert all(one.tally and len(one.tally.slices) == 2 for one in (*records, *again))
    assert set(alive) == {3}, "two variants and the reference"
    assert [stage for _, stage in progress.seen if stage == "drive"] == ["drive"] * (3 * 3 * 2)
    assert leftovers() == []


def test_two_runs_in_turn_follow_one_another_where_servers_cannot_be_up_at_once(homes: Path) -> None:
    engine, progress = FakeEngine(), Stages()
    records, again = in_turn(make_study(1, 2, blocks=2), progress, engine)
    assert [stage for _, stage in progress.seen] == STAGES * 6
    assert not any(one.tally and one.tally.slices for one in (*records, *again))
    for one in again:
        beside_it = next(mine for mine in records if (mine.block, mine.variant) == (one.block, "baseline"))
        began = sorted(each.started_unix_s for each in (*records, *again) if each.block == one.block)
        places = [began.index(each.started_unix_s) for each in (one, beside_it)]
        assert abs(places[0] - places[1]) == 1


def test_an_interrupted_block_goes_on_where_it_stopped(homes: Path) -> None:
    study = beside(1, 2, blocks=2)
    kept = {record.trial: record for record in interrupted(study, "restore")}
    assert set(kept) == {0, 1}
    resumed = Stages()
    records = carry_out(study, resumed)
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 4
    assert all(record == kept[record.trial] for record in records if record.trial in kept)
    assert {trial for trial, _ in resumed.seen} == set(range(4)) - set(kept)


def test_a_killed_block_leaves_nothing_after_the_next_start(homes: Path) -> None:
    command = [sys.executable, "-m", "tests.killed_run", "drive", "beside"]
    child = subprocess.run(command, timeout=60, check=False)
    assert child.returncode == -signal.SIGKILL
    replay_abandoned()
    assert leftovers() == []
    assert sleeping_servers() == []
    assert len(carry_out(beside(1, 2, blocks=2))) == 4


def test_slices_that_the_first_warm_ups_show_to_be_short_are_longer_in_all_blocks(homes: Path) -> None:
    study = beside(1, 2, blocks=2)
    study = study.but(workload=study.workload.but(clients=2, warmup_s=1.0))
    said: list[str] = []
    with Store(store_url()) as store, open_journal() as journal:
        store.add_run(make_run(study))
        bench = make_bench(study, make_run(study), journal, told=Acknowledged(acknowledged=6))
        bench = replace(bench, lengthens=lambda: True, tell=said.append)
        records = all_records(bench, store, Stages())
        kept = store.run("first")
    assert (kept.slice_s, kept.duration_s) == (2.0, 4.0)
    assert [record.whole for record in records] == [True] * 4
    assert [len(record.tally.slices) for record in records if record.tally] == [2] * 4
    assert said == [
        "slices are made longer, because in 1 s of warm-up a client of baseline ended 3 transactions: a "
        "slice takes 2 s, and the load of a trial 4 s, in all variants"
    ]
    assert leftovers() == []


def test_slices_of_a_bench_that_lengthens_none_stay(homes: Path) -> None:
    study = beside(1, 2, blocks=1)
    study = study.but(workload=study.workload.but(clients=2, warmup_s=1.0))
    carry_out(study, told=Acknowledged(acknowledged=1))
    with Store(store_url()) as store:
        assert store.run("first").slice_s == make_run(study).slice_s
