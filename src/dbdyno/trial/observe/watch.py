"""The watch: a thread that reads what a server holds, at even times while a phase goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dbdyno.driver.query import query
from dbdyno.errors import DriverFailed, DynoError
from dbdyno.host.process import families
from dbdyno.host.room import usable_disk_bytes
from dbdyno.layers.setup import Running
from dbdyno.records.gauges import GAUGES, Source
from dbdyno.records.record import Limit, Watched
from dbdyno.study.phases import Phase
from dbdyno.trial.observe.holdings import held, limits_of, occupied_bytes

READINGS = 600
"""About so many in a phase, whatever it takes: enough for a slope, and few beside what is watched."""
INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.1, 10.0
BUSY_SHARE_MAX = 0.1
"""Of a CPU's time, what reading may take: a server of thousands of processes is read less often."""
DISK_LEAST_BYTES = 16 << 20
"""With less than this free, a server's next write may fail."""


class Watch:
    """Reads while it is `looking`; `watched` tells what was read, once it ended."""

    def __init__(
        self,
        running: Running,
        phase: Phase,
        unix_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running = running
        self._interval_s = min(max(phase.takes_s / READINGS, INTERVAL_LEAST_S), INTERVAL_MOST_S)
        # A clock that is set in the midst would have it wait for an hour, or never.
        self._monotonic_s = monotonic_s
        self._started_unix_s, self._started_s = unix_s(), monotonic_s()
        self._readings: list[tuple[float, Mapping[str, float]]] = []
        self._missing: dict[str, str] = {}
        self._limits: dict[str, Limit] = {}

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Reads at the beginning, then in each interval, and at the end. Raises DynoError, in the place of
        what failed, where the disk of the data is full."""
        over = threading.Event()
        thread = threading.Thread(target=self._read_until, args=(over,), name="watch", daemon=True)
        self._limits = limits_of(families(self._running.process_ids), self._running.setup.data)
        self._read()
        thread.start()
        try:
            yield
        except DynoError as failure:
            self._require_disk(failure)
            raise
        finally:
            over.set()
            thread.join()
        self._read()
        self._require_disk(None)

    def watched(self) -> Watched:
        """What was read. Gauges of the engine's without any value are left out, because few engines have all
        of them."""
        named = {name for _, values in self._readings for name in values}
        return Watched(
            started_unix_s=self._started_unix_s,
            seconds=tuple(round(moment_s, 3) for moment_s, _ in self._readings),
            series={
                name: tuple(values.get(name) for _, values in self._readings)
                for name in GAUGES
                if name in named
            },
            limits={name: limit for name, limit in self._limits.items() if name in named},
            missing={name: why for name, why in self._missing.items() if name not in named},
        )

    def _read_until(self, over: threading.Event) -> None:
        due_s = self._interval_s
        while not over.wait(max(0.0, due_s - self._since_s())):
            began_s = time.thread_time()
            self._read()
            took_s = time.thread_time() - began_s
            due_s = max(due_s + self._interval_s, self._since_s() + took_s / BUSY_SHARE_MAX)

    def _since_s(self) -> float:
        return self._monotonic_s() - self._started_s

    def _read(self) -> None:
        members = families(self._running.process_ids)
        if not members:
            # A server that is gone holds nothing, and that is no value of any gauge.
            return
        moment_s = self._since_s()
        values, missing = held(members)
        self._missing |= missing
        self._readings.append((moment_s, {**values, **self._of_disk(), **self._of_engine()}))

    def _of_disk(self) -> dict[str, float]:
        data = self._running.setup.data
        if data.is_dir():
            return {"disk_bytes": occupied_bytes(data)}
        self._missing["disk_bytes"] = "the data are on a raw device, which has no files"
        return {}

    def _of_engine(self) -> dict[str, float]:
        """By a session of its own, because the load process has no time for questions."""
        counters, url = self._running.setup.engine.counters, self._running.server.url
        try:
            return counters.held(lambda sql: query(url, sql))
        except DriverFailed as failure:
            told = {name for name, gauge in GAUGES.items() if gauge.source is Source.ENGINE}
            self._missing |= dict.fromkeys(told, f"the server did not answer: {failure.message}")
            return {}

    def _require_disk(self, failure: DynoError | None) -> None:
        """Raises DynoError where the disk is full: whatever the server did then was not its own fault."""
        data = self._running.setup.data
        if not data.is_dir() or usable_disk_bytes(data) >= DISK_LEAST_BYTES:
            return
        said = f"; the load ended with: {failure.message}" if failure else ""
        raise DynoError(
            f"the disk that holds the data was full after {self._since_s():.0f} s{said}",
            "make room there, soak for a shorter time, or give `storage.size` where the data are on a volume",
        ) from failure
