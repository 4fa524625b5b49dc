"""The observer: a real process that burns a known amount of CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbdyno.applications.front import Front, Spent
from dbdyno.driver.tally import Tally
from dbdyno.layers.setup import Running, Setup
from dbdyno.trial.observe import Observer, watch
from dbdyno.trial.observe.observer import of_application, spent_by
from dbdyno.trial.observe.watch import (
    Bystanders,
    Held,
    KernelThreads,
    ProcessCounters,
    host_counters,
    resident_bytes,
)
from tests.fakes import make_tally

BURN = """
import os, sys, threading, time
def burn():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass
sys.stdin.readline()
thread = threading.Thread(target=burn)
thread.start()
thread.join()
print("burnt", flush=True)
sys.stdin.readline()
"""


def test_kernel_threads_are_told_apart_from_processes() -> None:
    threads = KernelThreads()
    first, second = threads.read()["kernel_cpu_s"], threads.read()["kernel_cpu_s"]
    assert 0 <= first <= second <= host_counters()["host_busy_s"]


def test_what_a_kernel_thread_used_stays_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, listed = KernelThreads(), {os.getpid()}
    monkeypatch.setattr(watch, "kernel_threads", lambda: frozenset(listed))
    used_s = threads.read()["kernel_cpu_s"]
    assert used_s > 0
    listed.clear()
    assert threads.read()["kernel_cpu_s"] == used_s


def test_a_thread_that_is_gone_still_counts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        counters = ProcessCounters((child.pid,))
        before, missing = counters.read()
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        after, _ = counters.read()
        child.kill()
        child.wait()
        gone, _ = counters.read()
    assert missing == {}
    # The kernel counts in ticks of 10 ms.
    assert after["cpu_user_s"] + after["cpu_system_s"] - before["cpu_user_s"] - before["cpu_system_s"] >= 0.37
    assert gone["cpu_user_s"] == after["cpu_user_s"]
    assert before["resident_bytes"] > 0
    assert gone["resident_bytes"] == 0


WRITES = """
import os, sys
if (child := os.fork()) == 0:
    with open(sys.argv[1], "wb") as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    print("written", flush=True)
    os.read(0, 1)
    os._exit(0)
os.waitpid(child, 0)
print("over", flush=True)
os.read(0, 1)
"""


def test_what_a_child_wrote_counts_once_after_its_parent_has_waited_for_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITES, tmp_path / "file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        counters = ProcessCounters((parent.pid,))
        parent.stdout.readline()
        while_here, _ = counters.read()
        parent.stdin.write(b"12")
        parent.stdin.flush()
        parent.stdout.readline()
        over, _ = counters.read()
        parent.kill()
    assert over["written_bytes"] == while_here["written_bytes"]
    assert over["cpu_user_s"] >= while_here["cpu_user_s"]


def test_memory_that_processes_share_counts_once() -> None:
    held = [Held(100, 900), Held(200, 1000), Held(0, 0)]
    assert resident_bytes(held) == 1300
    assert resident_bytes([]) == 0


def test_the_host_has_been_busy() -> None:
    assert host_counters()["host_busy_s"] > 0


def test_who_descends_from_dyno_and_has_no_part_in_a_trial_is_beside_it() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as own,
        subprocess.Popen(
            [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other,
    ):
        beside = Bystanders((own.pid,))
        beside.look()
        began_s = beside.read()["beside_cpu_s"]
        for child, least_s, most_s in ((own, 0.0, 0.36), (other, 0.37, 9.0)):
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
            assert least_s <= beside.read()["beside_cpu_s"] - began_s <= most_s
            child.kill()
            child.wait()
        assert beside.read()["beside_cpu_s"] - began_s >= 0.37


def _observed(embedded: bool, tally: Tally) -> dict[str, float]:
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        # Of what is gained between two samples a share would count, so the window begins before the first.
        began = time.time()
        with Observer((child.pid,), embedded) as observer, observer.looking():
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
            ended = time.time()
        child.kill()
    tally = tally.but(started_unix_s=began, duration_s=ended - began)
    engine = SimpleNamespace(counters=SimpleNamespace(view=lambda gained: gained))
    setup = cast(Setup, SimpleNamespace(engine=engine))
    running = Running(setup, cast(Any, None), cast(Any, None))
    running = replace(
        running,
        tally=tally,
        status_before={"rows": 3.0, "open": 1.0},
        status_after={"rows": 10.0, "open": 1.0},
    )
    observation = observer.observation(running)
    assert observation.engine_status == {"rows": 7.0}
    return observation.totals


def test_what_a_server_does_between_its_slices_is_told() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        with Observer((child.pid,), False) as observer:
            with observer.looking():
                pass  # The warm-up.
            began = time.time()
            with observer.looking():
                time.sleep(0.02)
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
            with observer.looking():
                time.sleep(0.02)
            ended = time.time()
        child.kill()
    tally = make_tally().but(started_unix_s=began, duration_s=ended - began)
    engine = SimpleNamespace(counters=SimpleNamespace(view=lambda gained: gained))
    setup = cast(Setup, SimpleNamespace(engine=engine))
    observation = observer.observation(Running(setup, cast(Any, None), cast(Any, None), tally=tally))
    assert observation.totals["cpu_s_between"] >= 0.37
    assert observation.totals["cpu_s_in_all"] >= observation.totals["cpu_s_between"]
    assert observation.totals["written_bytes_between"] <= observation.totals["written_bytes_in_all"]


def test_a_server_and_its_driver_are_told_apart() -> None:
    driver = {"user": 0.3, "system": 0.0}
    alone = _observed(False, make_tally(driver_cpu_s=driver))
    assert alone["server_cpu_user_s"] + alone["server_cpu_system_s"] >= 0.37
    assert alone["driver_cpu_user_s"] == 0.3
    together = _observed(True, make_tally(driver_cpu_s={"user": 99.0, "system": 0.0}))
    assert together["server_cpu_user_s"] == 0.0
    assert together["server_cpu_system_s"] > 0.0
    assert together["dyno_cpu_s"] < 0.2


def test_nothing_is_told_of_a_server_whose_processes_are_not_seen() -> None:
    with Observer((), False) as observer, observer.looking():
        began = time.time()
        time.sleep(0.05)
        ended = time.time()
    tally = make_tally().but(started_unix_s=began, duration_s=ended - began)
    engine = SimpleNamespace(counters=SimpleNamespace(view=lambda gained: gained))
    setup = cast(Setup, SimpleNamespace(engine=engine))
    observation = observer.observation(Running(setup, cast(Any, None), cast(Any, None), tally=tally))
    told = {*observation.totals, *observation.series}
    assert not [name for name in told if name.startswith(("server_", "resident", "other_", "read_"))]
    assert observation.missing["server_cpu_user_s"].startswith("the server's processes are not on this host")
    assert "host_busy_s" in observation.totals


def test_an_applications_cpu_has_names_of_its_own() -> None:
    counters = of_application(ProcessCounters((os.getpid(),)))
    assert counters["application_cpu_user_s"] > 0
    assert all(name.startswith("application_") for name in counters)
    assert of_application(ProcessCounters(())) == {}


def test_what_an_applications_workers_tell_is_a_total_like_others() -> None:
    front = Front(cast(Any, None), spent=lambda: Spent(3.0, 0.5, 0.2))
    assert spent_by(front) == {
        "application_requests": 3.0,
        "application_busy_s": 0.5,
        "application_database_s": 0.2,
    }
    assert spent_by(None) == {} == spent_by(Front(cast(Any, None)))
