"""Control groups of both versions on a tree like /sys/fs/cgroup: this host has only one of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.driver.job import Job
from dbdyno.engines.engine import Server
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.host import cgroups
from dbdyno.host.cgroups import Hierarchy, Throttling
from dbdyno.host.journal import open_journal
from dbdyno.layers.cpu import CPU
from dbdyno.layers.setup import Before, Running, Setup, apply
from dbdyno.records.record import Evidence
from dbdyno.trial.observe.observer import QuotaCounters
from tests.fakes import INSTALLATION, FakeEngine

SERVER_ID = 2**22 + 1
"""No process has this number."""


@dataclass
class Tree:
    """A mounted hierarchy, /proc beside it; Dyno is in the group `service/dyno` of it."""

    version: int
    root: Path
    proc: Path

    @property
    def own(self) -> Path:
        return self.root / "service" / "dyno"

    @property
    def parent(self) -> Path:
        """Where groups of the server's are made."""
        return self.own if self.version == 1 else self.own.parent

    def join(self, process: str | int, group: Path) -> None:
        """The process is in the group, as both the group and the process show."""
        folder = self.proc / str(process)
        folder.mkdir(exist_ok=True)
        controllers = "cpu,cpuacct" if self.version == 1 else ""
        path = "/" + str(group.relative_to(self.root))
        (folder / "cgroup").write_text(f"9:memory:/elsewhere\n3:{controllers}:{path}\n")
        (group / "cgroup.procs").write_text(f"{process}\n")

    def held_back(self, group: Path, throttled_ms: int) -> None:
        """The group's cpu.stat as the kernel writes it."""
        periods = f"nr_periods 80\nnr_throttled {throttled_ms // 50}\n"
        if self.version == 1:
            (group / "cpu.stat").write_text(f"{periods}throttled_time {throttled_ms * 1_000_000}\n")
        else:
            used = "usage_usec 9000000\nuser_usec 5000000\nsystem_usec 4000000\n"
            (group / "cpu.stat").write_text(f"{used}{periods}throttled_usec {throttled_ms * 1000}\n")


@pytest.fixture(params=[1, 2])
def tree(request: pytest.FixtureRequest, homes: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    root, proc = homes / "cgroup", homes / "proc"
    tree = Tree(request.param, root, proc)
    tree.own.mkdir(parents=True)
    (proc / "self").mkdir(parents=True)
    kind = "- cgroup cgroup rw,cpu,cpuacct" if tree.version == 1 else "- cgroup2 cgroup2 rw"
    (proc / "self" / "mountinfo").write_text(
        f"31 23 0:28 / /elsewhere rw - tmpfs tmpfs rw,mode=755\n32 31 0:29 / {root} rw,relatime {kind}\n"
    )
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tree.own.parent / "cgroup.subtree_control").write_text("memory\n")
    tree.join("self", tree.own)
    monkeypatch.setattr(cgroups, "PROC", proc)
    return tree


@pytest.fixture
def setup(tree: Tree) -> Iterator[Setup]:
    with open_journal() as journal:
        yield Setup(FakeEngine().engine, INSTALLATION, tree.root / "t-1", journal, Job(workload="tpcb"))
        for group in tree.root.glob(f"**/{cgroups.PREFIX}*"):
            # The kernel's files go with the group; those of this tree do not.
            shutil.rmtree(group)


def the_group(setup: Setup) -> Path:
    [group] = setup.launch.cgroups
    return group


def put(levels: dict[str, Level], setup: Setup) -> None:
    setup.asked = CPU.ask(levels, setup.engine)
    apply(setup, Before.DATA)


def proved(setup: Setup, knob: str, level: str) -> Evidence:
    class Alive:
        process_ids = (SERVER_ID,)

    [evidence] = CPU.prove({knob: level}, Running(setup, cast(Server, Alive()), cast(Any, None)))
    return evidence


def test_the_hierarchy_is_found_where_groups_may_be_made(tree: Tree) -> None:
    assert cgroups.hierarchy("cpu") == Hierarchy("cpu", tree.version, tree.parent)
    assert cgroups.hierarchy("rdma") is None


def test_a_group_that_cannot_be_seen_from_here_is_the_mounted_one(tree: Tree) -> None:
    """A container without a namespace of its own for groups."""
    memberships = (tree.proc / "self" / "cgroup").read_text()
    (tree.proc / "self" / "cgroup").write_text(memberships.replace("/service", "/of-the-host"))
    found = cgroups.hierarchy("cpu")
    assert found is not None and found.parent == tree.root


def test_a_quota_is_set_proved_and_lost(tree: Tree, setup: Setup) -> None:
    put({"quota": "150%"}, setup)
    group = the_group(setup)
    assert group == tree.parent / "dyno-t-1"
    if tree.version == 1:
        assert (group / "cpu.cfs_quota_us").read_text() == "150000"
        assert (group / "cpu.cfs_period_us").read_text() == "100000"
    else:
        assert (group / "cpu.max").read_text() == "150000 100000"
    tree.join(SERVER_ID, group)
    assert proved(setup, "quota", "150%").in_effect
    # Somebody lifts it: the proof must notice.
    lifted = {1: ("cpu.cfs_quota_us", "-1"), 2: ("cpu.max", "max 100000")}[tree.version]
    (group / lifted[0]).write_text(lifted[1] + "\n")
    evidence = proved(setup, "quota", "150%")
    assert not evidence.in_effect
    assert evidence.effective is not None and evidence.effective.value == "max"


def test_a_weight_is_set_and_proved(tree: Tree, setup: Setup) -> None:
    put({"weight": 250}, setup)
    group = the_group(setup)
    file, written = {1: ("cpu.shares", "2560"), 2: ("cpu.weight", "250")}[tree.version]
    assert (group / file).read_text() == written
    tree.join(SERVER_ID, group)
    assert proved(setup, "weight", "250").in_effect
    assert not proved(setup, "weight", "100").in_effect


def test_quota_and_weight_share_one_group(tree: Tree, setup: Setup) -> None:
    put({"quota": "50%", "weight": 10}, setup)
    tree.join(SERVER_ID, the_group(setup))
    assert proved(setup, "quota", "50%").in_effect and proved(setup, "weight", "10").in_effect


def test_a_server_outside_its_group_is_no_proof(tree: Tree, setup: Setup) -> None:
    put({"quota": "50%"}, setup)
    (the_group(setup) / "cgroup.procs").write_text("")
    evidence = proved(setup, "quota", "50%")
    assert not evidence.in_effect
    assert evidence.effective is not None and evidence.effective.value == "not a member"


def test_the_controller_is_handed_down_and_taken_back(tree: Tree, setup: Setup, homes: Path) -> None:
    control = tree.own.parent / "cgroup.subtree_control"
    put({"quota": "50%"}, setup)
    [path] = (homes / "host/journal").glob("*.jsonl")
    noted = [
        line.split('"kind": "')[1].split('"')[0]
        for line in path.read_text().splitlines()[1:]
        if "kind" in line
    ]
    if tree.version == 1:
        assert control.read_text() == "memory\n"
        assert noted == ["cgroup"]
        return
    assert control.read_text() == "+cpu"
    assert noted == ["cgroup_delegation", "cgroup"]
    shutil.rmtree(the_group(setup))
    setup.journal.undo_to(0)
    assert control.read_text() == "-cpu"


def test_a_group_that_may_not_be_made_is_blocked(
    tree: Tree, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int = 0o777) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch, pytest.raises(Blocked, match="no right to make a control group"):
        patch.setattr(Path, "mkdir", refuse)
        put({"quota": "50%"}, setup)


def test_the_evidence_tells_how_often_the_quota_was_used_up(tree: Tree, setup: Setup) -> None:
    put({"quota": "50%"}, setup)
    tree.join(SERVER_ID, the_group(setup))
    tree.held_back(the_group(setup), 2500)
    evidence = CPU.exercised(proved(setup, "quota", "50%"), Running(setup, cast(Any, None), cast(Any, None)))
    assert evidence.exercised is not None
    assert evidence.exercised.value == "held back in 50 of 80 periods, 2.50 s, since the server's start"


def test_a_group_without_a_quota_was_never_held_back(tree: Tree) -> None:
    assert cgroups.throttling(tree.own) == Throttling()
    (tree.own / "cpu.stat").write_text("usage_usec 12\nuser_usec 10\nsystem_usec 2\n")
    assert cgroups.throttling(tree.own) == Throttling()


def test_a_quota_from_outside_is_counted_apart(tree: Tree, setup: Setup) -> None:
    put({"quota": "50%"}, setup)
    group = the_group(setup)
    tree.join(SERVER_ID, group)
    tree.join(os.getpid(), tree.own)
    counters = QuotaCounters((SERVER_ID,))
    assert counters.missing == {}
    assert set(counters.read().values()) == {0.0}
    tree.held_back(group, 2500)
    asked = counters.read()
    assert (asked["throttled_s"], asked["outer_throttled_s"]) == (2.5, 0.0)
    # A container's limit lies above both, a service's on the group of Dyno itself: each counts once.
    tree.held_back(tree.root / "service", 1000)
    tree.held_back(tree.own, 500)
    both = counters.read()
    assert (both["throttled_s"], both["outer_throttled_s"]) == (4.0, 1.5)
    assert (both["quota_periods"], both["throttled_periods"]) == (240.0, 80.0)


def test_a_host_without_the_controller_says_so(tree: Tree) -> None:
    (tree.proc / "self" / "mountinfo").write_text("31 23 0:28 / /elsewhere rw - tmpfs tmpfs rw\n")
    counters = QuotaCounters(())
    assert counters.read() == {}
    assert counters.missing == {"throttled_s": "no cgroup hierarchy offers the cpu controller"}
