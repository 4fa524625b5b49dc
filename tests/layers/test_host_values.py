"""SMT, governor, boost and NUMA on a tree like /sys: this host may have none of them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.driver.job import Job
from dbdyno.errors import Blocked, DynoError
from dbdyno.frozen import Level
from dbdyno.host import cgroups, kernel_values, paths
from dbdyno.host.journal import Journal, open_journal, replay_abandoned
from dbdyno.host.kernel_values import bound_threads, losing_cpusets
from dbdyno.layers import cpu
from dbdyno.layers.cpu import CPU
from dbdyno.layers.setup import Before, Running, Setup, apply
from tests.fakes import INSTALLATION, FakeEngine
from tests.needs import needs_root


@pytest.fixture
def system(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two policies with governors, SMT that is on, boost that is on, two nodes of which one has a CPU."""
    root = homes / "sys"
    files = {
        "cpu/online": "0-1",
        "cpu/smt/control": "on",
        "cpu/cpufreq/boost": "1",
        "node/node0/cpulist": "0",
        "node/node1/cpulist": "4094",
    }
    for policy in ("policy0", "policy1"):
        files[f"cpu/cpufreq/{policy}/scaling_governor"] = "powersave"
        files[f"cpu/cpufreq/{policy}/scaling_available_governors"] = "performance powersave"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content + "\n")
    monkeypatch.setattr(cpu, "CPUS", root / "cpu")
    monkeypatch.setattr(cpu, "NODES", root / "node")
    monkeypatch.setattr(kernel_values, "_HOMES", (root,))
    return root


@pytest.fixture
def journal(system: Path) -> Iterator[Journal]:
    with open_journal() as journal:
        yield journal


def setup_of(journal: Journal, scratch: Path) -> Setup:
    return Setup(FakeEngine().engine, INSTALLATION, scratch, journal, Job(workload="tpcb"))


def put(levels: dict[str, Level], setup: Setup) -> None:
    setup.asked = CPU.ask(levels, setup.engine)
    apply(setup, Before.DATA)


def proved(setup: Setup, knob: str, level: str) -> Any:
    [evidence] = CPU.prove({knob: level}, Running(setup, cast(Any, None), cast(Any, None)))
    return evidence


@pytest.mark.parametrize(
    ("knob", "level", "file", "written"),
    [
        ("smt", "off", "cpu/smt/control", "off"),
        ("boost", "off", "cpu/cpufreq/boost", "0"),
        ("governor", "performance", "cpu/cpufreq/policy1/scaling_governor", "performance"),
    ],
)
def test_a_value_is_set_proved_and_put_back(
    journal: Journal, system: Path, knob: str, level: str, file: str, written: str
) -> None:
    before = (system / file).read_text().strip()
    setup = setup_of(journal, system)
    with journal.scope():
        put({knob: level}, setup)
        assert (system / file).read_text().strip() == written
        evidence = proved(setup, knob, level)
        assert evidence.in_effect, evidence.reason
        # The firmware, or somebody else, takes it back: the proof must notice.
        (system / file).write_text(before)
        assert not proved(setup, knob, level).in_effect
        (system / file).write_text(written)
    assert (system / file).read_text().strip() == before


def test_a_governor_that_the_host_lacks(journal: Journal, system: Path) -> None:
    with pytest.raises(Blocked, match="policy0 offers no schedutil") as caught:
        put({"governor": "schedutil"}, setup_of(journal, system))
    assert caught.value.hint == "it offers: performance, powersave"


@pytest.mark.parametrize("state", ["notsupported", "forceoff", "notimplemented"])
def test_smt_that_cannot_be_chosen(journal: Journal, system: Path, state: str) -> None:
    (system / "cpu/smt/control").write_text(state)
    with pytest.raises(Blocked, match=state):
        put({"smt": "on"}, setup_of(journal, system))


@pytest.fixture
def second_thread(system: Path) -> int:
    """The last CPU that this process may use, as the second thread of the first one's core."""
    first, *_, last = sorted(os.sched_getaffinity(0)) * 2
    if first == last:
        pytest.skip("this host has one CPU")
    for number in (first, last):
        (system / f"cpu/cpu{number}/topology").mkdir(parents=True)
        (system / f"cpu/cpu{number}/topology/thread_siblings_list").write_text(f"{first},{last}\n")
    return last


def test_smt_stays_on_where_a_thread_would_lose_its_cpus(
    journal: Journal, system: Path, second_thread: int
) -> None:
    with subprocess.Popen(["sleep", "60"]) as bound:
        os.sched_setaffinity(bound.pid, {second_thread})
        try:
            with pytest.raises(Blocked, match="is bound to CPUs that go offline"):
                put({"smt": "off"}, setup_of(journal, system))
            assert (system / "cpu/smt/control").read_text().strip() == "on"
            assert (bound.pid, "sleep") in bound_threads({second_thread})
            os.sched_setaffinity(bound.pid, os.sched_getaffinity(0))
            assert (bound.pid, "sleep") not in bound_threads({second_thread})
        finally:
            bound.kill()


@needs_root
def test_smt_stays_on_where_a_cpuset_would_lose_cpus(
    journal: Journal, system: Path, second_thread: int
) -> None:
    found = cgroups.mounted("cpuset")
    if found is None or found[0] != 1:
        pytest.skip("this host has no cpusets of version 1")
    group = found[1] / f"dyno-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpuset.cpus").write_text(str(second_thread))
        with pytest.raises(Blocked, match="would lose CPUs for good"):
            put({"smt": "off"}, setup_of(journal, system))
        assert (system / "cpu/smt/control").read_text().strip() == "on"
        assert group in losing_cpusets({second_thread})
        (group / "cpuset.cpus").write_text(str(min(os.sched_getaffinity(0))))
        assert group not in losing_cpusets({second_thread})
    finally:
        group.rmdir()


def test_a_node_whose_cpus_are_not_allowed(journal: Journal, system: Path) -> None:
    with pytest.raises(Blocked, match="CPU 4094 is not there or not allowed"):
        put({"node": 1}, setup_of(journal, system))


def lock_of(path: Path) -> Path:
    return paths.lock(f"value{str(path).replace('/', '-')}")


def test_a_lock_of_somebody_else_on_a_value_stops_nobody(journal: Journal, system: Path) -> None:
    """Whoever may read a file of the kernel's may lock it. Nobody else can enter the folder of locks."""
    path = system / "cpu/smt/control"
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with journal.scope():
            assert kernel_values.set_value(journal, path, "off", "cpu.smt") == "off"
        left_by_a_dead_dyno(path, "forceoff")
        replay_abandoned()
    assert path.read_text() == "forceoff"
    assert lock_of(path).parent.stat().st_mode & 0o077 == 0


def test_two_dynos_do_not_set_one_value(journal: Journal, system: Path) -> None:
    """Another descriptor stands for another process."""
    path = system / "cpu/smt/control"
    with lock_of(path).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Blocked, match="another dyno of this user has set") as caught:
            kernel_values.set_value(journal, path, "off", "cpu.smt")
    assert caught.value.hint == "wait until it ends"
    assert path.read_text().strip() == "on"
    assert kernel_values.set_value(journal, path, "off", "cpu.smt") == "off"


def test_an_inner_scope_keeps_the_claim_of_the_outer_one(journal: Journal, system: Path) -> None:
    path = system / "cpu/smt/control"
    with journal.scope():
        kernel_values.set_value(journal, path, "off", "cpu.smt")
        with journal.scope():
            kernel_values.set_value(journal, path, "forceoff", "cpu.smt")
        assert path.read_text() == "off"
        with lock_of(path).open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert path.read_text() == "on"
    with lock_of(path).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def left_by_a_dead_dyno(path: Path, before: str) -> Path:
    entry = {"id": 0, "kind": "kernel_value", "path": str(path), "before": before}
    left = paths.journals() / "1-1-1.jsonl"
    left.write_text(json.dumps(entry) + "\n")
    return left


def test_the_value_of_a_dyno_that_died_meanwhile_is_not_the_original(journal: Journal, system: Path) -> None:
    path = system / "cpu/smt/control"
    path.write_text("forceoff")
    left_by_a_dead_dyno(path, "on")
    with journal.scope():
        assert kernel_values.set_value(journal, path, "off", "cpu.smt") == "off"
    assert path.read_text() == "on"


def test_a_value_that_another_dyno_has_set_since_is_not_put_back_under_it(
    journal: Journal, system: Path
) -> None:
    path = system / "cpu/smt/control"
    left = left_by_a_dead_dyno(path, "on")
    path.write_text("off")
    with lock_of(path).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DynoError, match="another dyno of this user has set it"):
            replay_abandoned()
        assert path.read_text() == "off" and left.exists()
        with pytest.raises(DynoError, match="a Dyno that died changed"):
            kernel_values.set_value(journal, path, "off", "cpu.smt")
    replay_abandoned()
    assert path.read_text() == "on" and not left.exists()


def test_a_value_of_a_disk_is_not_put_back_on_another_that_has_its_name(system: Path) -> None:
    """As the kernel names loop devices, and disks that are plugged in anew."""
    disk = system / "block" / "sdz"
    value = disk / "queue" / "read_ahead_kb"
    value.parent.mkdir(parents=True)
    for number, left in (("7", "128"), ("8", "512")):
        value.write_text("128\n")
        (disk / "diskseq").write_text("7\n")
        with open_journal() as journal:
            kernel_values.set_value(journal, value, "512", "storage.read_ahead")
            (disk / "diskseq").write_text(f"{number}\n")
        assert kernel_values.read(value) == left


def test_a_scheduler_that_a_loop_device_kept_is_put_back_unless_another_was_chosen(system: Path) -> None:
    """The kernel counts its disks on when a file goes, which a killed Dyno takes with it. Whose file comes
    next inherits what Dyno has set."""
    disk = system / "block" / "loop9"
    value, backing = disk / "queue" / "scheduler", disk / "loop" / "backing_file"
    value.parent.mkdir(parents=True)
    for file, chosen, left in (("", "", "none"), ("theirs", "", "none"), ("theirs", "kyber", "kyber")):
        value.write_text("none\n")
        (disk / "diskseq").write_text("7\n")
        with open_journal() as journal:
            kernel_values.set_value(journal, value, "mq-deadline", "storage.scheduler")
            (disk / "diskseq").write_text("8\n")
            if file:
                backing.parent.mkdir(exist_ok=True)
                backing.write_text("/somebodys/volume.img\n")
            if chosen:
                value.write_text(f"{chosen}\n")
        assert kernel_values.read(value) == left
