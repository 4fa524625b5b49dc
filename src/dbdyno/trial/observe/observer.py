"""The observer: a thread that samples the host and the server while the load runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dbdyno.applications.product import Front
from dbdyno.driver.tally import Cpu
from dbdyno.host.counters import HardwareCounters
from dbdyno.layers.setup import Running
from dbdyno.records.record import Observation
from dbdyno.trial.observe import window
from dbdyno.trial.observe.processes import (
    Bystanders,
    Counters,
    KernelThreads,
    ProcessCounters,
    host_counters,
)
from dbdyno.trial.observe.quotas import QuotaCounters
from dbdyno.trial.observe.window import Totals, Windows

PERIOD_S = 0.5
"""Short enough that what a thread did after its last sample is small beside a measured part of seconds."""

_SERIES = ["resident_bytes", "read_bytes", "written_bytes", "steal_s", "host_busy_s"]
_OF_HOST = ["steal_s", "host_busy_s"]
UNSEEN = "the server's processes are not on this host, or hide from this user"
OF_PROCESSES = ("frequency_hz", "other_cpu_s", "resident_bytes_end", "resident_bytes_max")
"""What is not known without the server's processes, beside what is read of them."""
APPLICATION = {
    "cpu_user_s": "application_cpu_user_s",
    "cpu_system_s": "application_cpu_system_s",
    "run_queue_wait_s": "application_run_queue_wait_s",
}

SET_S = 0.05
"""A wall clock that moves more than this between two samples was set. One that is drawn slowly moves less."""


class Observer:
    """Samples while it is `looking`: from before the load to after it, once or for each of its slices. A
    context manager; `observation` tells what was seen, once it ended.

    `embedded` says that the processes given hold the driver as well, whose CPU is then taken off the
    server's. `front` is the application in front of the server, where there is one. `driver_ids` are the load
    process.
    """

    def __init__(
        self,
        process_ids: tuple[int, ...],
        embedded: bool,
        front: Front | None = None,
        driver_ids: tuple[int, ...] = (),
    ) -> None:
        in_front = front.process.process_ids if front else ()
        self._processes = ProcessCounters(process_ids)
        self._application = ProcessCounters(in_front)
        self._bystanders = Bystanders((*process_ids, *in_front, *driver_ids))
        self._front = front
        self._hardware = HardwareCounters(process_ids)
        self._kernel = KernelThreads()
        self._quotas = QuotaCounters(process_ids)
        self._embedded = embedded
        self._seen = bool(process_ids)
        # An embedded engine shares its process with the driver, and second by second the two cannot be told
        # apart.
        self._cpu_name = "process_cpu_s" if embedded else "server_cpu_s"
        self._ahead: list[tuple[float, float]] = []
        self._base_s = time.time() - time.monotonic()
        self._samples: list[Totals] = []
        self._missing = self._hardware.missing | self._quotas.missing

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None:
        self._hardware.close()

    @contextmanager
    def looking(self, first_s: float = PERIOD_S) -> Iterator[None]:
        """Samples at the beginning, after `first_s`, then in every period, and at the end."""
        over = threading.Event()
        thread = threading.Thread(
            target=self._sample_until, args=(over, first_s), name="observer", daemon=True
        )
        self._bystanders.look()
        self._sample()
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._sample()

    def observation(self, running: Running) -> Observation:
        """What happened in the measured part of the load that the tally tells of; nothing after a rest."""
        tally = running.tally
        if tally is None:
            return Observation(duration_s=0.0)
        windows = window.on_steady_time(tally.windows, self._ahead)
        gained = window.gained_in(self._samples, windows)
        resident = [
            value
            for start_s, end_s in windows
            for value in window.gauge(self._samples, "resident_bytes", start_s, end_s)
        ]
        raw = ("cpu_user_s", "cpu_system_s", self._cpu_name)
        totals = {name: value for name, value in gained.items() if name not in raw}
        totals |= self._split_cpu(gained, tally.driver_cpu_s)
        used_s = gained["cpu_user_s"] + gained["cpu_system_s"]
        if self._hardware.with_kernel and gained.get("cycles") and used_s:
            # What the clock really was, throttling and boost included, whatever a governor says.
            totals["frequency_hz"] = gained["cycles"] / used_s
        else:
            self._missing["frequency_hz"] = "no cycles were counted, in user mode and in the kernel"
        if self._seen:
            totals |= {"resident_bytes_end": resident[-1], "resident_bytes_max": max(resident)}
        # A driver on another host takes nothing of this one.
        ours = () if running.afar is not None else ("driver_",)
        known_s = _sum(totals, "server_", "application_", *ours, "dyno_", "kernel_", "beside_")
        totals["other_cpu_s"] = max(0.0, gained["host_busy_s"] - known_s)
        if not self._seen:
            self._missing |= dict.fromkeys((*filter(_of_server, totals), *OF_PROCESSES), UNSEEN)
        totals |= running.lagged
        changed = _changed(running.status_before, running.status_after)
        return Observation(
            duration_s=sum(end_s - start_s for start_s, end_s in windows),
            totals={name: round(value, 6) for name, value in totals.items() if name not in self._missing},
            series=self._series(windows),
            missing=self._missing,
            engine_status=changed,
            engine_view=running.setup.engine.counters.view(changed),
        )

    def _series(self, windows: Windows) -> dict[str, list[float]]:
        names = [self._cpu_name, *_SERIES] if self._seen else _OF_HOST
        return window.per_second(self._samples, names, windows)

    def _split_cpu(self, gained: Counters, driver: Cpu) -> Counters:
        """Server and driver apart. An embedded engine's process holds both, and the driver knows its own
        share."""
        taken = (driver.user, driver.system) if self._embedded else (0.0, 0.0)
        return {
            "server_cpu_user_s": max(0.0, gained["cpu_user_s"] - taken[0]),
            "server_cpu_system_s": max(0.0, gained["cpu_system_s"] - taken[1]),
            "driver_cpu_user_s": driver.user,
            "driver_cpu_system_s": driver.system,
        }

    def _sample_until(self, over: threading.Event, first_s: float) -> None:
        wait_s = first_s
        while not over.wait(wait_s):
            self._sample()
            wait_s = PERIOD_S

    def _sample(self) -> None:
        read, missing = self._processes.read()
        # Of a server whose processes are not seen nothing is read.
        counters = {"cpu_user_s": 0.0, "cpu_system_s": 0.0, **read}
        counters |= of_application(self._application) | spent_by(self._front)
        counters |= host_counters() | self._kernel.read() | self._bystanders.read()
        counters |= self._hardware.read() | self._quotas.read()
        counters[self._cpu_name] = counters.get("cpu_user_s", 0.0) + counters.get("cpu_system_s", 0.0)
        counters["dyno_cpu_s"] = time.process_time()
        self._missing |= missing
        now_s = self._base_s + time.monotonic()
        ahead_s = time.time() - now_s
        if not self._ahead or abs(ahead_s - self._ahead[-1][1]) > SET_S:
            self._ahead.append((now_s, ahead_s))
        self._samples.append(Totals(now_s, counters))


def _of_server(name: str) -> bool:
    """Whether a total is read of the server's own processes."""
    return name.startswith(("server_", "context_switches", "run_queue_wait", "read_bytes", "written_bytes"))


def of_application(processes: ProcessCounters) -> Counters:
    """CPU and waits of an application by names of their own; nothing where there is none."""
    if not processes.roots:
        return {}
    found, _ = processes.read()
    return {name: found.get(read, 0.0) for read, name in APPLICATION.items()}


def spent_by(front: Front | None) -> Counters:
    """What the workers of an application tell of their time; nothing where there is none, or it tells
    nothing."""
    spent = front.spent() if front else None
    if spent is None:
        return {}
    return {
        "application_requests": spent.requests,
        "application_busy_s": spent.busy_s,
        "application_database_s": spent.database_s,
    }


def _changed(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What the engine's counters gained over the whole load, warm-up included; those that stood still are
    left out."""
    gained = {name: round(value - before.get(name, 0.0), 6) for name, value in after.items()}
    return {name: value for name, value in gained.items() if value}


def _sum(totals: Mapping[str, float], *prefixes: str) -> float:
    """Seconds of CPU of the names that start so; names are `server_cpu_user_s` and the like."""
    return sum(value for name, value in totals.items() if name.startswith(prefixes) and "_cpu" in name)
