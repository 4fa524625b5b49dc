"""The observer: a thread that samples the host and the server while the load runs.

What happened in the measured part follows from its samples by arithmetic on running totals, and so does what
CPU quotas did. Beside it a second thread asks the engine for its own counters, and what sessions wait for.
"""

from __future__ import annotations

import math
import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.driver.passwords import conversation
from dbdyno.driver.tally import CpuTime
from dbdyno.engines.engine import Counters as EngineCounters
from dbdyno.errors import DriverFailed
from dbdyno.host import cgroups
from dbdyno.host.perf import HardwareCounters
from dbdyno.layers.setup import Running
from dbdyno.records.record import Observation
from dbdyno.trial.observe.watch import (
    Bystanders,
    Counters,
    DeviceCounters,
    KernelThreads,
    ProcessCounters,
    host_counters,
)

if TYPE_CHECKING:
    from dbdyno.applications.front import Front


class QuotaCounters:
    """Running totals over every group whose limit holds for the server or for Dyno, and so for the driver.

    A group that Dyno made throttles as the study asked it to. What any other does, a container's or a
    service's, nobody asked for: it is counted apart, in `outer_throttled_s`.
    """

    def __init__(self, process_ids: tuple[int, ...]) -> None:
        groups = [
            group
            for process_id in (*process_ids, os.getpid())
            for group in cgroups.groups_of(process_id, "cpu")
        ]
        self._groups = tuple(dict.fromkeys(groups))
        self.missing = {} if groups else {"throttled_s": "no cgroup hierarchy offers the cpu controller"}

    def read(self) -> Counters:
        """Totals so far; none where there are no groups."""
        if not self._groups:
            return {}
        held = {group: cgroups.throttling(group) for group in self._groups}
        return {
            "quota_periods": float(sum(one.periods for one in held.values())),
            "throttled_periods": float(sum(one.throttled_periods for one in held.values())),
            "throttled_s": sum(one.throttled_s for one in held.values()),
            "outer_throttled_s": sum(one.throttled_s for group, one in held.items() if not _asked(group)),
        }


def _asked(group: Path) -> bool:
    return group.name.startswith(cgroups.PREFIX)


ROUNDING_S = 1e-6
"""How much of each window rounding may take: its ends are unix times, which a float holds to a quarter of
this."""


@dataclass(frozen=True)
class Totals:
    """Running totals at one moment, in unix time that no setting of the clock moves."""

    unix_s: float
    counters: Counters


BEHIND = ("transactions_behind", "replay_lag_bytes", "receive_queue")
"""How far the node of a cluster that is furthest behind is, by its engine."""
GAUGES = frozenset({"resident_bytes", "runnable", *BEHIND})
"""Values at a moment; all other names are running totals."""


Windows = Sequence[tuple[float, float]]
"""Stretches of the measured part, from and to (unix time, seconds), in their order."""


def on_steady_time(windows: Windows, ahead: Sequence[tuple[float, float]]) -> Windows:
    """Windows as a clock tells them that nobody sets. Each begins by a wall clock, which was `ahead` of that
    by so much (s) from a moment on; the first moment is that of the first sample."""
    ends = [*(from_s for from_s, _ in ahead[1:]), math.inf]

    def steady(start_s: float) -> float:
        """By the reading that was possible when the clock stood like this, or is the nearest to it."""
        fits = (
            (max(from_s - found, found - end_s, 0.0), found)
            for (from_s, ahead_s), end_s in zip(ahead, ends, strict=True)
            for found in (start_s - ahead_s,)
        )
        return min(fits)[1]

    begun = [(steady(start_s), end_s - start_s) for start_s, end_s in windows]
    return tuple((start_s, start_s + takes_s) for start_s, takes_s in begun)


def gained_in(samples: list[Totals], windows: Windows) -> Counters:
    """What each running total gained in all windows together."""
    total: Counters = {}
    for start_s, end_s in windows:
        for name, value in differences(samples, start_s, end_s).items():
            total[name] = total.get(name, 0.0) + value
    return total


def differences(samples: list[Totals], start_s: float, end_s: float) -> Counters:
    """What each running total gained between two moments (unix time, seconds).

    At the start the load is steady on both sides, so the value is interpolated. At the end the load stops:
    what the sample after it shows was gained before it, so that sample counts in full.
    """
    at_end = samples[_at_or_after(samples, end_s)]
    return {
        name: max(0.0, at_end.counters.get(name, 0.0) - _interpolated(samples, name, start_s))
        for name in at_end.counters
        if name not in GAUGES
    }


def gauge(samples: list[Totals], name: str, start_s: float, end_s: float) -> list[float]:
    """A gauge's values from the sample before the start to the one after the end."""
    first = max(0, _after(samples, start_s) - 1)
    last = _at_or_after(samples, end_s)
    return [sample.counters[name] for sample in samples[first : last + 1] if name in sample.counters]


def per_second(samples: list[Totals], names: list[str], windows: Windows) -> dict[str, list[float]]:
    """Each name's gain in each whole second of the measured part; a gauge's value at the second's end.

    What lies between two windows is no part of any second.
    """
    seconds = _seconds(windows)
    series: dict[str, list[float]] = {}
    for name in names:
        if name in GAUGES:
            series[name] = [_interpolated(samples, name, second[-1][1]) for second in seconds]
        else:
            series[name] = [round(_gained(samples, name, second), 6) for second in seconds]
    return series


def _seconds(windows: Windows) -> Sequence[Windows]:
    """The stretches of the windows that make up each whole second of the measured part."""
    seconds: list[list[tuple[float, float]]] = []
    room_s, rounding_s = 0.0, ROUNDING_S * len(windows)
    for start_s, end_s in windows:
        while start_s < end_s:
            if room_s <= rounding_s:
                seconds.append([])
                room_s += 1.0
            until_s = min(end_s, start_s + room_s)
            seconds[-1].append((start_s, until_s))
            room_s -= until_s - start_s
            start_s = until_s
    return seconds[:-1] if room_s > rounding_s else seconds


def _gained(samples: list[Totals], name: str, windows: Windows) -> float:
    return sum(
        _interpolated(samples, name, end_s) - _interpolated(samples, name, start_s)
        for start_s, end_s in windows
    )


def _interpolated(samples: list[Totals], name: str, moment_s: float) -> float:
    following = _after(samples, moment_s)
    if following == 0:
        return samples[0].counters.get(name, 0.0)
    if following == len(samples):
        return samples[-1].counters.get(name, 0.0)
    before, after = samples[following - 1], samples[following]
    share = (moment_s - before.unix_s) / (after.unix_s - before.unix_s)
    low, high = before.counters.get(name, 0.0), after.counters.get(name, 0.0)
    return low + share * (high - low)


def _after(samples: list[Totals], moment_s: float) -> int:
    """Where the first sample after a moment stands; behind the last one where there is none."""
    return bisect_right(samples, moment_s, key=_unix_s)


def _at_or_after(samples: list[Totals], moment_s: float) -> int:
    """Where the first sample at a moment or after it stands; the last one where there is none."""
    return min(bisect_left(samples, moment_s, key=_unix_s), len(samples) - 1)


def _unix_s(sample: Totals) -> float:
    return sample.unix_s


PERIOD_S = 0.5
"""Short enough that what a thread did after its last sample is small beside a measured part of seconds."""

_SERIES = ["resident_bytes", "read_bytes", "written_bytes"]
_OF_HOST = ["steal_s", "host_busy_s"]
_OF_DEVICES = (
    "runnable",
    "disk_reads",
    "disk_writes",
    "disk_wait_s",
    "disk_queue_s",
    "network_received_bytes",
    "network_sent_bytes",
)
"""What is told second by second where the kernel shows it here."""
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


ASK_EVERY_S, WAITS_EVERY = 1.0, 2
"""The waits are asked for each second time: of 4,000 sessions, this takes a server 12 to 15 ms of CPU."""


Lag = Callable[[], Mapping[str, float]]


class Asker:
    """Asks a server for its counters each second while it is `looking`, and each other second for what its
    sessions wait for. Its thread holds one session from the first look to `close`, because to connect is
    dearer than to ask. By `lag` it asks each second how far other nodes are behind."""

    def __init__(
        self, url: str, counters: EngineCounters, moment_s: Callable[[], float], lag: Lag = dict
    ) -> None:
        self._url, self._counters, self._moment_s, self._lag = url, counters, moment_s, lag
        self._samples: list[Totals] = []
        self._lags: list[Totals] = []
        self._waits: list[Totals] = []
        self._changed = threading.Condition()
        self._looking = self._over = False
        self._thread: threading.Thread | None = None

    def look(self, looking: bool) -> None:
        """Begins to ask, or leaves off."""
        with self._changed:
            self._looking = looking
            self._changed.notify()
        if looking and self._thread is None:
            self._thread = threading.Thread(target=self._go_on, name="asker", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the session."""
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def series(self, windows: Windows) -> dict[str, list[float]]:
        """What the engine counted in each whole second of the measured part, by the titles of its view; empty
        where it was not asked twice."""
        samples = self._samples
        if len(samples) < 2 or not windows:
            return {}
        by_name = per_second(samples, list(samples[-1].counters), windows)
        seconds = len(next(iter(by_name.values()), ()))
        views = [
            self._counters.view({name: values[second] for name, values in by_name.items()})
            for second in range(seconds)
        ]
        titles = dict.fromkeys(title for view in views for title in view)
        return {title: [view.get(title, 0.0) for view in views] for title in titles}

    def behind(self, windows: Windows) -> dict[str, list[float]]:
        """How far nodes were behind at the end of each whole second; empty where there is no other."""
        lags = self._lags
        names = [name for name in BEHIND if lags and name in lags[0].counters]
        return per_second(lags, names, windows)

    def waits(self, windows: Windows) -> dict[str, float]:
        """How many sessions on average were at what, over the moments of the measured part."""
        seen = [one.counters for one in self._waits if any(a <= one.unix_s <= b for a, b in windows)]
        names = dict.fromkeys(name for one in seen for name in one)
        return {name: round(sum(one.get(name, 0.0) for one in seen) / len(seen), 4) for name in names}

    def _go_on(self) -> None:
        # A server that answers no more has nothing to tell, and why is told by what failed under load.
        with suppress(DriverFailed), conversation(self._url) as ask:
            while self._is_to_ask():
                self._samples.append(Totals(self._moment_s(), self._counters.sampled(ask)))
                if len(self._samples) % WAITS_EVERY:
                    self._waits.append(Totals(self._moment_s(), self._counters.waits(ask)))
                if behind := self._lag():
                    self._lags.append(Totals(self._moment_s(), dict(behind)))
                with self._changed:
                    self._changed.wait_for(lambda: self._over or not self._looking, ASK_EVERY_S)

    def _is_to_ask(self) -> bool:
        """Waits until there is a look; False where it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._looking)
            return not self._over


class Observer:
    """Samples while it is `looking`: from before the load to after it, once or for each of its slices. A
    context manager; `observation` tells what was seen, once it ended.

    `embedded` says that the processes given hold the driver as well, whose CPU is then taken off the
    server's. `front` is the application in front of the server, where there is one. `driver_ids` are the load
    process. A server at the URL `asked` is asked for the engine's own `counters` meanwhile, and how far its
    cluster's nodes `lag`.
    """

    def __init__(
        self,
        process_ids: tuple[int, ...],
        embedded: bool,
        front: Front | None = None,
        driver_ids: tuple[int, ...] = (),
        asked: str = "",
        counters: EngineCounters | None = None,
        lag: Lag = dict,
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
        self._devices = DeviceCounters()
        self._asker = Asker(asked, counters, self._now_s, lag) if asked and counters is not None else None
        self._samples: list[Totals] = []
        # Of each look the numbers of its first and its last sample.
        self._looks: list[tuple[int, int]] = []
        self._missing = self._hardware.missing | self._quotas.missing

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None:
        self._hardware.close()
        if self._asker is not None:
            self._asker.close()

    @contextmanager
    def looking(self, first_s: float = PERIOD_S) -> Iterator[None]:
        """Samples at the beginning, after `first_s`, then in every period, and at the end."""
        over = threading.Event()
        thread = threading.Thread(
            target=self._sample_until, args=(over, first_s), name="observer", daemon=True
        )
        self._bystanders.look()
        first = len(self._samples)
        self._sample()
        thread.start()
        if self._asker is not None:
            self._asker.look(True)
        try:
            yield
        finally:
            if self._asker is not None:
                self._asker.look(False)
            over.set()
            thread.join()
            self._sample()
            self._looks.append((first, len(self._samples) - 1))

    def observation(self, running: Running) -> Observation:
        """What happened in the measured part of the load that the tally tells of; nothing after a rest."""
        tally = running.tally
        if tally is None:
            return Observation(duration_s=0.0)
        windows = on_steady_time(tally.windows, self._ahead)
        gained = gained_in(self._samples, windows)
        resident = [
            value
            for start_s, end_s in windows
            for value in gauge(self._samples, "resident_bytes", start_s, end_s)
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
        totals |= {**running.lagged, **self._in_others_turns()}
        changed = _changed(running.status_before, running.status_after)
        return Observation(
            duration_s=sum(end_s - start_s for start_s, end_s in windows),
            totals={name: round(value, 6) for name, value in totals.items() if name not in self._missing},
            series={**self._series(windows), **(self._asker.behind(windows) if self._asker else {})},
            missing=self._missing,
            engine_status=changed,
            engine_view=running.setup.engine.counters.view(changed),
            engine_series=self._asker.series(windows) if self._asker is not None else {},
            waits=self._asker.waits(windows) if self._asker is not None else {},
        )

    def _in_others_turns(self) -> Counters:
        """What the server did from its first slice to its last, and how much of that between two of them,
        when others had their turn; nothing without slices."""
        # The first look is the warm-up.
        looks = self._looks[1:]
        if len(looks) < 2 or not self._seen or self._embedded:
            return {}
        gaps = [(last, first) for (_, last), (first, _) in pairwise(looks)]
        between, whole = self._done(gaps), self._done([(looks[0][0], looks[-1][1])])
        return {
            **{f"{name}_between": value for name, value in between.items()},
            **{f"{name}_in_all": value for name, value in whole.items()},
        }

    def _done(self, spans: Iterable[tuple[int, int]]) -> Counters:
        """What the server wrote, and the CPU time that it took, between the samples of these numbers."""
        total = {"written_bytes": 0.0, "cpu_s": 0.0}
        for first, last in spans:
            start, end = self._samples[first].counters, self._samples[last].counters
            total["cpu_s"] += end[self._cpu_name] - start[self._cpu_name]
            total["written_bytes"] += end.get("written_bytes", 0.0) - start.get("written_bytes", 0.0)
        return {name: value for name, value in total.items() if name not in self._missing}

    def _series(self, windows: Windows) -> dict[str, list[float]]:
        own = [self._cpu_name, *_SERIES] if self._seen else []
        devices = [name for name in _OF_DEVICES if name in self._samples[0].counters]
        return per_second(self._samples, [*own, *_OF_HOST, *devices], windows)

    def _split_cpu(self, gained: Counters, driver: CpuTime) -> Counters:
        """Server and driver apart. An embedded engine's process holds both, and the driver knows its own
        share."""
        taken = (driver.user, driver.system) if self._embedded else (0.0, 0.0)
        return {
            "server_cpu_user_s": max(0.0, gained["cpu_user_s"] - taken[0]),
            "server_cpu_system_s": max(0.0, gained["cpu_system_s"] - taken[1]),
            "driver_cpu_user_s": driver.user,
            "driver_cpu_system_s": driver.system,
        }

    def _now_s(self) -> float:
        """Unix time that no setting of the clock moves."""
        return self._base_s + time.monotonic()

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
        counters |= host_counters() | self._devices.read() | self._kernel.read() | self._bystanders.read()
        counters |= self._hardware.read() | self._quotas.read()
        counters[self._cpu_name] = counters.get("cpu_user_s", 0.0) + counters.get("cpu_system_s", 0.0)
        counters["dyno_cpu_s"] = time.process_time()
        self._missing |= missing
        now_s = self._now_s()
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
