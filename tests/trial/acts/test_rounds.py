"""How an engine ends and comes back: power cuts that are real, on volumes, with real engines."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import Mock

import pytest

from dbdyno.engines.embedded import EmbeddedServer
from dbdyno.errors import Blocked, DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.journal import open_journal
from dbdyno.host.volumes import power, volume
from dbdyno.records.record import Loss
from dbdyno.study.soak import Act
from dbdyno.study.trials import Phase
from dbdyno.trial import acts
from dbdyno.trial import prepare as preparing
from dbdyno.trial.acts import act_on, endings, permitted
from dbdyno.trial.prepare import prepare
from tests.host.killed_host import what_is_left
from tests.needs import needs_root, require_file_system
from tests.trial.acts.rounds_cases import LOSING, acted, round_with, running, trial_of
from tests.trials import alone_on_host, bench_of, host_state, study_of

pytestmark = pytest.mark.engine

DURABLE: dict[str, dict[str, Level]] = {
    "sqlite": {"config.synchronous": "full", "config.journal_mode": "wal"},
    "firebird": {"config.forced_writes": True},
    "mariadb": {"config.innodb_flush_log_at_trx_commit": 1},
}


@needs_root
@pytest.mark.parametrize("engine", DURABLE)
def test_a_power_cut_takes_nothing_along_that_is_durable(homes_with_data: Path, engine: str) -> None:
    require_file_system("ext4")
    for found in acted(engine, DURABLE[engine], Act.CUT, Act.CUT):
        recovery = found.recovery
        assert (recovery.lost, recovery.damage, recovery.fault) == (0, "", "")
        assert recovery.acknowledged > 0
        assert recovery.present >= recovery.acknowledged
        assert recovery.ready_s is not None
        assert all(check.holds for check in found.checks)
        assert {"balances_equal", "no_transaction_twice"} <= {check.name for check in found.checks}


@needs_root
@pytest.mark.parametrize("engine", LOSING)
def test_a_power_cut_takes_along_what_nobody_waits_for(homes_with_data: Path, engine: str) -> None:
    require_file_system("ext4")
    [found] = acted(engine, LOSING[engine], Act.CUT)
    recovery = found.recovery
    assert recovery.lost > 0 or recovery.damage
    assert recovery.permits is not Loss.NOTHING
    assert recovery.fault == "", "the settings permit it"
    if recovery.lost:
        assert recovery.lost_ms > 0.0


@needs_root
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_power_is_cut_on_each_file_system_that_has_the_call(homes: Path, kind: str) -> None:
    require_file_system(kind)
    levels = {**LOSING["sqlite"], "storage.filesystem": kind}
    [found] = acted("sqlite", levels, Act.CUT)
    assert found.recovery.lost > 0 or found.recovery.damage


@needs_root
def test_pages_that_are_on_their_way_are_torn(homes: Path) -> None:
    require_file_system("ext4")
    [found] = acted("sqlite", {**LOSING["sqlite"], "config.journal_mode": "delete"}, Act.TEAR)
    assert found.recovery.torn_pages is not None
    assert 0 < found.recovery.torn_pages <= acts.TORN_MOST
    [found] = acted("sqlite", DURABLE["sqlite"], Act.TEAR)
    assert found.recovery.fault == "", "its write-ahead log tells torn frames by their checksums"


def test_a_kill_loses_nothing_that_the_kernel_has(homes: Path) -> None:
    for found in acted("sqlite", DURABLE["sqlite"], Act.KILL, Act.STOP):
        assert (found.recovery.lost, found.recovery.damage) == (0, "")
        assert found.recovery.torn_pages is None


def test_the_load_after_an_act_is_held_against_the_fastest_before(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "WINDOW_S", 0.02)
    found = acted("sqlite", DURABLE["sqlite"], Act.STOP, Act.STOP, Act.STOP)
    speeds = [one.recovery.speed_per_s for one in found]
    assert [one.recovery.full_speed_s is not None for one in found] == [False, True, True]
    assert all(speed > 0.0 for speed in speeds)
    assert [one.running.fastest_per_s for one in found] == [max(speeds[:place]) for place in (1, 2, 3)]


def test_what_the_log_says_after_an_act_is_told_once(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddedServer, "log_problems", lambda _: ["page 7 was torn"])
    found = acted("sqlite", DURABLE["sqlite"], Act.KILL, Act.STOP)
    told = [[check.detail for check in one.checks if check.name.startswith("server_log")] for one in found]
    assert told == [["page 7 was torn"], []]
    assert found[0].recovery.damage == "", "the invariants judge"


def test_a_clean_stop_is_timed_and_loses_nothing(homes: Path) -> None:
    [found] = acted("sqlite", LOSING["sqlite"], Act.STOP)
    assert found.recovery.stop_s is not None
    assert found.recovery.lost == 0
    assert found.recovery.permits is Loss.NOTHING


def test_the_host_s_own_file_system_is_never_cut(homes: Path) -> None:
    with running("sqlite", DURABLE["sqlite"], Act.KILL) as (up, bench, undo):
        for act in (Act.CUT, Act.TEAR):
            with pytest.raises(Blocked, match="the host's file system") as refused:
                act_on(up, round_with(act), bench, undo)
            assert refused.value.hint
        assert up.server.alive(), "nothing was done"


@pytest.mark.parametrize(
    ("filesystem", "told"),
    [("tmpfs", "tmpfs cannot be cut"), ("host", "keeps the data on the host's file system")],
)
def test_a_file_system_without_the_call_is_blocked_before_anything_is_made(
    homes: Path, filesystem: str, told: str
) -> None:
    levels: dict[str, Level] = {"storage.filesystem": filesystem}
    study = study_of("sqlite", levels)
    refusal = pytest.raises(Blocked, match=told)
    with open_journal() as journal, journal.scope(), ExitStack() as undo, refusal as refused:
        prepare(trial_of(levels, Act.CUT), bench_of(study, journal), undo)
    assert "ext4" in refused.value.hint


NO_LOOP = Blocked("storage.device", "this kernel offers no loop devices", "load the loop module")
"""As in a container."""


@pytest.mark.parametrize(
    ("place", "name", "refusal"),
    [
        (volume, "image_of", NO_LOOP),
        (preparing, "require_disk", DynoError("the disk has no room for a volume", "make room there")),
    ],
)
def test_where_there_is_no_volume_optional_cuts_are_left_out_and_the_rest_goes_on(
    homes: Path, monkeypatch: pytest.MonkeyPatch, place: object, name: str, refusal: DynoError
) -> None:
    require_file_system("ext4")
    monkeypatch.setattr(place, name, Mock(side_effect=refusal))
    with running("sqlite", DURABLE["sqlite"], Act.CUT, optional=True) as (up, bench, undo):
        assert up.setup.volume is None and up.setup.data.is_dir()
        for act in (Act.CUT, Act.TEAR):
            found = act_on(up, round_with(act, optional=True), bench, undo)
            assert found.running is up and found.checks == ()
            assert (found.recovery.blocked, found.recovery.remedy) == (refusal.message, refusal.hint)
            assert found.recovery.fault == ""
        stopped = act_on(up, round_with(Act.STOP, optional=True), bench, undo).recovery
    assert stopped.acknowledged > 0
    assert (stopped.lost, stopped.damage, stopped.blocked) == (0, "", "")


def test_a_volume_that_a_level_asks_for_has_no_folder_in_its_place(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_file_system("ext4")
    monkeypatch.setattr(volume, "image_of", Mock(side_effect=NO_LOOP))
    levels: dict[str, Level] = {"storage.filesystem": "ext4"}
    study = study_of("sqlite", levels)
    refusal = pytest.raises(Blocked, match="no loop devices")
    with open_journal() as journal, journal.scope(), ExitStack() as undo, refusal:
        prepare(trial_of(levels, Act.CUT, optional=True), bench_of(study, journal), undo)


class WithoutCall:
    """The switch of a volume on a kernel that lacks the call."""

    def __init__(self, _volume: object) -> None:
        pass

    def __enter__(self) -> WithoutCall:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def off(self) -> None:
        raise Blocked("storage.filesystem", "this kernel does not shut ext4 down", "take ext4 or xfs")


def test_a_kernel_that_refuses_in_the_midst_of_the_load_leaves_a_server_that_is_up(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "PowerSwitch", WithoutCall)
    monkeypatch.setattr(endings, "require_volume", lambda _setup: None)
    with running("sqlite", DURABLE["sqlite"], Act.KILL) as (up, bench, undo):
        found = act_on(up, round_with(Act.CUT, optional=True), bench, undo)
        assert found.recovery.blocked == "this kernel does not shut ext4 down"
        assert found.running.process_ids != up.process_ids
        assert found.running.load.run(found.running.setup.job).operations > 0


def test_an_engine_that_dies_before_the_act_is_not_taken_for_ended(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "strike", lambda *_: False)
    monkeypatch.setattr(endings, "BEYOND_S", -0.4)
    with running("sqlite", DURABLE["sqlite"], Act.KILL) as (up, bench, undo):
        with pytest.raises(DynoError, match="the load ended before the act"):
            act_on(up, Phase(name="kill", duration_s=0.5, then=Act.KILL, ledger=True), bench, undo)
        monkeypatch.setattr(up.load, "run", Mock(side_effect=LoadDied("the load process died")))
        with pytest.raises(LoadDied):
            act_on(up, Phase(name="kill", duration_s=0.5, then=Act.KILL, ledger=True), bench, undo)


@pytest.mark.parametrize(
    ("failure", "of_the_engine"),
    [
        (DriverFailed("the database disk image is malformed", kind="server"), True),
        (LoadDied("the load process died"), True),
        (ServerFailed("it did not start", log="page 67 is corrupted"), True),
        (DriverFailed("a bug of the driver", kind="internal"), False),
    ],
)
def test_only_what_the_engine_did_wrong_is_damage(
    homes: Path, monkeypatch: pytest.MonkeyPatch, failure: DynoError, of_the_engine: bool
) -> None:
    monkeypatch.setattr(acts, "_first_answer", Mock(side_effect=failure))
    with running("sqlite", DURABLE["sqlite"], Act.KILL) as (up, bench, undo):
        if of_the_engine:
            found = act_on(up, round_with(Act.KILL), bench, undo)
            assert found.recovery.damage == failure.message
            assert found.log == getattr(failure, "log", "")
        else:
            with pytest.raises(DriverFailed, match="a bug of the driver"):
                act_on(up, round_with(Act.KILL), bench, undo)


@needs_root
def test_a_dyno_that_is_killed_in_a_power_cut_leaves_the_host_as_it_was(homes: Path) -> None:
    require_file_system("ext4")
    with alone_on_host():
        before = host_state()
        command = [sys.executable, "-m", "tests.trial.acts.killed_cut"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert what_is_left(before) == {}


def test_a_kill_damages_nothing_and_a_stop_loses_nothing(homes: Path) -> None:
    with running("sqlite", LOSING["sqlite"], Act.KILL) as (up, _, _):
        losses = [permitted(up.setup, act) for act in (Act.CUT, Act.TEAR, Act.KILL, Act.STOP)]
    assert losses == [Loss.DATA, Loss.DATA, Loss.COMMITS, Loss.NOTHING]
