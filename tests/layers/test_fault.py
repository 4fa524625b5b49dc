"""Faults are proved like any level, do what they say, and go with the trial."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import Blocked, ServerFailed
from dbdyno.host import cgroups
from dbdyno.host.journal import open_journal
from dbdyno.host.stopper import send
from dbdyno.layers.fault import FAULT, HISTOGRAM_SHARE
from dbdyno.layers.layer import by_layer
from dbdyno.layers.memory import SWAP_LIMITS, prove_limit
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.setup import MORE_MEMORY
from tests.fakes import FakeEngine
from tests.needs import needs_root, skipping_blocked
from tests.trials import alone_on_host, tried

pytestmark = pytest.mark.engine


def programs() -> list[str]:
    """The modules that run as processes below this one."""
    children = psutil.Process(os.getpid()).children(recursive=True)
    return [word for child in children for word in child.cmdline() if word.startswith("dbdyno.host.")]


def test_without_a_fault_every_knob_proves_that_there_is_none(homes: Path) -> None:
    levels = {f"fault__{name}": "none" for name in FAULT.knobs}
    with tried("sqlite", **levels) as found:
        assert {found.value(f"fault.{name}") for name in FAULT.knobs} == {"none"}
    assert programs() == []


def test_stolen_time_is_taken_and_given_back(homes: Path) -> None:
    with tried("sqlite", fault__stolen_cpu="30%") as found:
        assert found.value("fault.stolen_cpu") == "30%"
        assert programs() == ["dbdyno.host.burner"] * len(os.sched_getaffinity(0))
        assert "s of CPU time taken" in found.exercised("fault.stolen_cpu")
    assert programs() == []


def test_a_server_with_less_memory_is_in_a_group_with_that_limit(homes_with_data: Path) -> None:
    with skipping_blocked(), tried("mariadb", fault__memory="900M") as found:
        assert found.value("fault.memory") == str(900 << 20)
        assert found.exercised("fault.memory")


def test_a_limit_of_memory_is_a_level_of_the_memory_layer_without_swap(homes_with_data: Path) -> None:
    with skipping_blocked(), tried("mariadb", memory__server="900M") as found:
        assert found.value("memory.server") == str(900 << 20)
        [group] = found.running.setup.own_groups
        swap = next((group / name for name in SWAP_LIMITS.values() if (group / name).is_file()), None)
        assert swap is None or swap.read_text().strip() in ("0", str(900 << 20))
        if swap is not None and swap.name == SWAP_LIMITS[1]:
            swap.write_text(str(1000 << 20))
            assert not prove_limit("memory.server", "900M", found.running).in_effect


def test_a_server_without_enough_memory_is_told_to_be_killed_for_that(homes_with_data: Path) -> None:
    with (
        skipping_blocked(),
        pytest.raises(ServerFailed, match="its control group has no more than 24 MiB") as met,
        tried("mariadb", memory__server="24M"),
    ):
        pass
    assert met.value.hint == MORE_MEMORY


def test_a_quota_and_a_limit_of_memory_go_together(homes_with_data: Path) -> None:
    with skipping_blocked(), tried("mariadb", cpu__quota="150%", fault__memory="900M") as found:
        assert (found.value("cpu.quota"), found.value("fault.memory")) == ("150%", str(900 << 20))


def test_a_server_that_stands_still_now_and_then_answers_in_between(homes_with_data: Path) -> None:
    with skipping_blocked(), tried("mariadb", fault__pause="50ms/300ms") as found:
        assert found.value("fault.pause") == "50ms/300ms"
        server = psutil.Process(found.running.process_ids[0])
        seen, deadline = set[bool](), time.monotonic() + 60
        while len(seen) < 2 and time.monotonic() < deadline:
            seen.add(server.status() == psutil.STATUS_STOPPED)
        assert seen == {True, False}
        assert found.running.load.run(found.running.setup.job).operations > 0
    assert programs() == []


@pytest.mark.parametrize("engine", ["mariadb", "postgresql"])
def test_a_slow_network_is_in_every_flight_of_requests(homes_with_data: Path, engine: str) -> None:
    with skipping_blocked(), tried(engine, fault__network_delay="3ms") as found:
        told = re.fullmatch(r"(\S+) ms a round trip, (\S+) ms without", found.value("fault.network_delay"))
        assert told
        assert float(told[1]) >= 3 * HISTOGRAM_SHARE
        # From BEGIN to COMMIT a transaction has six flights at least.
        tally = found.running.load.run(found.running.setup.job)
        assert tally.latency_us.min is not None
        assert tally.latency_us.min >= 6 * 3000 * HISTOGRAM_SHARE
        evidence = found.evidence["fault.network_delay"]
        shown = LAYERS["fault"].exercised(evidence, replace(found.running, tally=tally)).exercised
        assert shown is not None and "ms at least" in shown.value


def test_a_delay_that_the_driver_does_not_keep_is_not_in_effect(homes_with_data: Path) -> None:
    with tried("mariadb") as found:
        evidence = LAYERS["fault"].prove({"network_delay": "2ms"}, found.running)
        assert not evidence[0].in_effect and "asked for 2ms" in evidence[0].reason
        job = found.running.setup.job.but(network_delay_s=0.002)
        slowed = replace(found.running, setup=replace(found.running.setup, job=job))
        [none] = LAYERS["fault"].prove({"network_delay": "none"}, slowed)
        assert not none.in_effect
        assert none.reason.startswith("asked for none, found ") and "ms a round trip" in none.reason


@needs_root
def test_a_full_volume_has_no_more_room_than_the_level(homes: Path) -> None:
    with (
        alone_on_host(),
        skipping_blocked(),
        tried("sqlite", storage__filesystem="ext4", fault__disk_free="40M") as found,
    ):
        room = os.statvfs(found.running.setup.data)
        assert room.f_bfree * room.f_frsize <= 40 << 20
        assert found.value("fault.disk_free").endswith("MiB free")


@needs_root
def test_a_slow_disk_has_its_limit_on_the_volumes_device(homes_with_data: Path) -> None:
    with (
        alone_on_host(),
        skipping_blocked(),
        tried("mariadb", storage__filesystem="ext4", fault__disk_operations=2000) as found,
    ):
        assert "2000" in found.value("fault.disk_operations")


@pytest.mark.parametrize(
    ("factor", "level", "why"),
    [
        ("fault.disk_free", "64M", "the host's own, which is not filled"),
        ("fault.disk_operations", 100, "no device of their own"),
        ("fault.pause", "1s/500ms", "no time to run"),
    ],
)
def test_what_cannot_be_is_blocked_with_what_would_allow_it(
    homes: Path, factor: str, level: str | int, why: str
) -> None:
    with pytest.raises(Blocked) as refused:
        if factor == "fault.pause":
            FAULT.ask(by_layer({factor: level})["fault"], FakeEngine().engine)
        else:
            with tried("sqlite", **{factor.replace(".", "__"): level}):
                pass
    assert why in refused.value.message and refused.value.hint and refused.value.factor == factor


@pytest.mark.parametrize(("knob", "level"), [("pause", "200ms/5s"), ("network_delay", "2ms")])
def test_an_engine_in_the_load_process_is_neither_paused_nor_behind_a_network(knob: str, level: str) -> None:
    with pytest.raises(Blocked, match="driver's process"):
        LAYERS["fault"].ask({knob: level}, FakeEngine(embedded=True).engine)


@needs_root
def test_members_of_a_group_are_stopped_and_strangers_are_not(homes: Path) -> None:
    with open_journal() as journal, skipping_blocked():
        group = cgroups.make(journal, "cpu", f"t{os.getpid()}", {}, "fault.pause")
        children = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
        (group / "cgroup.procs").write_text(str(children[0].pid))
        try:
            assert send(group, signal.SIGSTOP) == [children[0].pid]
            assert psutil.Process(children[1].pid).status() != psutil.STATUS_STOPPED
        finally:
            for child in children:
                child.kill()
                child.wait()


def test_a_burner_dies_with_who_started_it() -> None:
    """Nothing that Dyno starts outlives it: `process.start` sees to that."""
    code = (
        "import os, sys; from pathlib import Path; from dbdyno.host import process;"
        "out = Path(os.devnull).open('wb');"
        "child = process.start([sys.executable, '-m', 'dbdyno.host.burner', '0', '1'],"
        " environment=os.environ, output=out); print(child.pid, flush=True)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    process_id = int(said.stdout)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(process_id) and time.monotonic() < deadline:
        if psutil.Process(process_id).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    assert not psutil.pid_exists(process_id) or (psutil.Process(process_id).status() == psutil.STATUS_ZOMBIE)
