"""The observer: exact arithmetic over samples, and a real process that burns a known amount of CPU."""

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

from dbdyno.driver.tally import Tally
from dbdyno.layers.setup import Running, Setup
from dbdyno.trial.observe import Observer, processes
from dbdyno.trial.observe.processes import KernelThreads, ProcessCounters, host_counters
from dbdyno.trial.observe.window import Totals, differences, gained_in, gauge, per_second
from tests.fakes import make_tally

STEADY = [
    Totals(float(second), {"cpu_user_s": second * 0.5, "resident_bytes": 100.0}) for second in range(11)
]
"""Half a CPU from second 0 to 10."""


def test_the_start_is_interpolated() -> None:
    assert differences(STEADY, 2.5, 10.0)["cpu_user_s"] == pytest.approx(3.75)


def test_at_the_end_the_next_sample_counts_in_full() -> None:
    # Load until 3.4, nothing after: what the sample at 4 shows was all gained before 3.4.
    samples = [*STEADY[:4], Totals(4.0, {"cpu_user_s": 1.7}), Totals(5.0, {"cpu_user_s": 1.7})]
    assert differences(samples, 1.0, 3.4)["cpu_user_s"] == pytest.approx(1.2)


def test_a_window_beyond_the_samples_uses_the_nearest() -> None:
    assert differences(STEADY, -5.0, 99.0)["cpu_user_s"] == pytest.approx(5.0)


def test_a_counter_that_begins_within_the_window_counts_from_zero() -> None:
    samples = [Totals(0.0, {}), Totals(1.0, {"read_bytes": 50.0})]
    assert differences(samples, 0.0, 1.0) == {"read_bytes": 50.0}


def test_series_have_one_value_per_whole_second() -> None:
    series = per_second(STEADY, ["cpu_user_s", "resident_bytes"], [(1.0, 5.7)])
    assert series == {"cpu_user_s": [0.5] * 4, "resident_bytes": [100.0] * 4}


def test_what_lies_between_two_windows_is_no_part_of_any_second() -> None:
    windows = [(1.0, 1.5), (4.0, 4.5), (6.0, 7.0)]
    series = per_second(STEADY, ["cpu_user_s", "resident_bytes"], windows)
    assert series == {"cpu_user_s": [0.5, 0.5], "resident_bytes": [100.0] * 2}
    burst = [Totals(float(n), {"cpu_user_s": 9.0 * (n > 4)}) for n in range(11)]
    assert per_second(burst, ["cpu_user_s"], [(1.0, 2.0), (6.0, 7.0)]) == {"cpu_user_s": [0.0, 0.0]}


def test_windows_are_added_up() -> None:
    assert gained_in(STEADY, [(1.0, 2.0), (4.0, 6.0)])["cpu_user_s"] == pytest.approx(1.5)


def test_a_gauge_is_seen_from_before_the_start_to_after_the_end() -> None:
    samples = [Totals(float(n), {"resident_bytes": float(n)}) for n in range(5)]
    assert gauge(samples, "resident_bytes", 1.5, 2.5) == [1.0, 2.0, 3.0]


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


def test_what_a_kernel_thread_used_stays_when_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = tmp_path / "children"
    listed.write_text(f"{os.getpid()} ")
    monkeypatch.setattr(processes, "KERNEL_THREADS", str(listed))
    threads = KernelThreads()
    used_s = threads.read()["kernel_cpu_s"]
    assert used_s > 0
    listed.write_text("")
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


def test_the_host_has_been_busy() -> None:
    assert host_counters()["host_busy_s"] > 0


def _observed(embedded: bool, tally: Tally) -> dict[str, float]:
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        with Observer((child.pid,), embedded) as observer, observer.looking():
            began = time.time()
            child.stdin.write(b"\n")
            child.stdin.flush()
            child.stdout.readline()
            ended = time.time()
        child.kill()
    tally = tally.model_copy(update={"started_unix_s": began, "duration_s": ended - began})
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


def test_a_server_and_its_driver_are_told_apart() -> None:
    driver = {"user": 0.3, "system": 0.0}
    alone = _observed(False, make_tally(driver_cpu_s=driver))
    assert alone["server_cpu_user_s"] + alone["server_cpu_system_s"] >= 0.37
    assert alone["driver_cpu_user_s"] == 0.3
    together = _observed(True, make_tally(driver_cpu_s={"user": 99.0, "system": 0.0}))
    assert together["server_cpu_user_s"] == 0.0
    assert together["server_cpu_system_s"] > 0.0
    assert together["dyno_cpu_s"] < 0.2
