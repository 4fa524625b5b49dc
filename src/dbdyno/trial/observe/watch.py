"""The watch: a thread that reads what a server holds, at even times while a phase goes on.

`held` reads what the server's processes hold, and how much of it they may (proc(5)).

What the kernel counts of the server's processes and threads, read from /proc (proc(5)).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dbdyno.driver.passwords import query
from dbdyno.errors import DriverFailed, DynoError
from dbdyno.host import cgroups, kernel_files
from dbdyno.host.kernel_files import counters_text
from dbdyno.host.process import families, family, kernel_threads, stat_fields, stats_of_families
from dbdyno.host.room import memory_bytes, usable_disk_bytes
from dbdyno.layers.setup import Running
from dbdyno.records.metrics import GAUGES, SHARED, GaugeSource
from dbdyno.records.record import Limit, Watched
from dbdyno.study.trials import Phase

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PARENT, THREADS, STARTED = 1, 17, 19
"""Among the fields of `stat_fields`."""

Counters = dict[str, float]


class Held(NamedTuple):
    """What a process holds resident: its own, and what others may hold as well (files, shared memory)."""

    own_bytes: int
    shared_bytes: int


def resident_bytes(held: Sequence[Held]) -> float:
    """What processes of one server hold together. Shared memory counts once, as the one that holds most of it
    has it: each of PostgreSQL's processes holds what it touched of the same buffers."""
    return float(sum(one.own_bytes for one in held) + max((one.shared_bytes for one in held), default=0))


@dataclass
class ProcessCounters:
    """Running totals over a set of processes and all that descend from them.

    Threads and processes come and go while a server runs, and the kernel forgets a thread's counters with the
    thread. So each is followed by itself: what it showed last stays in the total when it is gone. But what a
    process read and wrote is counted as its parent's once that has waited for its end.
    """

    roots: tuple[int, ...]
    _last: dict[tuple[str, int, int], Counters] = field(default_factory=dict)
    _parents: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def read(self) -> tuple[Counters, dict[str, str]]:
        """Totals so far, and for each name that could not be read the reason."""
        missing: dict[str, str] = {}
        members = stats_of_families(self.roots)
        held = [self._read_process(process_id, fields, missing) for process_id, fields in members.items()]
        for gone in self._inherited(members):
            del self._last[gone], self._parents[gone]
        totals: Counters = {"resident_bytes": resident_bytes(held)}
        for counters in self._last.values():
            for name, value in counters.items():
                totals[name] = totals.get(name, 0.0) + value
        return totals, missing

    def _inherited(self, members: Mapping[int, Sequence[str]]) -> list[tuple[str, int, int]]:
        """Those of the gone whose parents are here, and have what they read and wrote among their own."""
        here = {("io", process_id, int(fields[STARTED])) for process_id, fields in members.items()}
        return [one for one, parent in self._parents.items() if one not in here and parent in members]

    def _read_process(self, process_id: int, fields: list[str], missing: dict[str, str]) -> Held:
        folder = f"/proc/{process_id}"
        started = int(fields[STARTED])
        try:
            self._last["cpu", process_id, started] = {
                "cpu_user_s": int(fields[11]) / TICKS_PER_S,
                "cpu_system_s": int(fields[12]) / TICKS_PER_S,
            }
            try:
                self._last["io", process_id, started] = _io(counters_text(f"{folder}/io"))
                self._parents["io", process_id, started] = int(fields[PARENT])
            except kernel_files.Gone:
                raise
            except kernel_files.UnreadableFile as hidden:
                missing["read_bytes"] = missing["written_bytes"] = hidden.message
            # What the kernel tells of a process is of its first thread, so one alone needs no list of them.
            alone = fields[THREADS] == "1"
            for thread_id in () if alone else kernel_files.names(f"{folder}/task"):
                self._read_thread(f"{folder}/task/{thread_id}", int(thread_id), started)
            if alone:
                self._read_thread(folder, process_id, started)
            _, resident, shared, *_ = map(int, counters_text(f"{folder}/statm").split())
            return Held((resident - shared) * PAGE_BYTES, shared * PAGE_BYTES)
        except kernel_files.Gone:
            return Held(0, 0)

    def _read_thread(self, folder: str, thread_id: int, started: int) -> None:
        try:
            status, schedule = counters_text(f"{folder}/status"), counters_text(f"{folder}/schedstat").split()
        except kernel_files.Gone:
            return
        self._last["thread", thread_id, started] = {
            "context_switches_voluntary": _status_number(status, "\nvoluntary_ctxt_switches:"),
            "context_switches_involuntary": _status_number(status, "\nnonvoluntary_ctxt_switches:"),
            "run_queue_wait_s": int(schedule[1]) / 1e9,
        }


@dataclass
class _CpuTimes:
    """CPU seconds of processes, each followed by itself, as in ProcessCounters."""

    _last: dict[str, int] = field(default_factory=dict)

    def read(self, process_ids: Iterable[int]) -> float:
        """The running total of these, and of all that were read before."""
        for process_id in process_ids:
            try:
                fields = stat_fields(process_id)
            except kernel_files.Gone:
                continue
            self._last[f"{process_id}:{fields[STARTED]}"] = int(fields[11]) + int(fields[12])
        return sum(self._last.values()) / TICKS_PER_S


@dataclass
class KernelThreads:
    """CPU seconds of the kernel's own threads: write-back, a file system's journal, io_uring's workers.

    They work for whoever asked, here mostly for the server, and are nobody's process.
    """

    _times: _CpuTimes = field(default_factory=_CpuTimes)

    def read(self) -> Counters:
        """`kernel_cpu_s`, 0 where the kernel does not list them (CONFIG_PROC_CHILDREN)."""
        return {"kernel_cpu_s": self._times.read(kernel_threads())}


@dataclass
class Bystanders:
    """CPU seconds of what descends from this process and is none of its `own`: the servers of other trials,
    which go on working in their background, and those who disturb a soak."""

    own: tuple[int, ...]
    _members: frozenset[int] = frozenset()
    _times: _CpuTimes = field(default_factory=_CpuTimes)

    def look(self) -> None:
        """Finds out who is there. Who comes later is a stranger until then."""
        self._members = frozenset(family(os.getpid())) - {os.getpid(), *families(self.own)}

    def read(self) -> Counters:
        """`beside_cpu_s`, a running total like others."""
        return {"beside_cpu_s": self._times.read(self._members)}


def _status_number(status: str, name: str) -> float:
    start = status.index(name) + len(name)
    return float(status[start : status.index("\n", start)])


def _io(text: str) -> Counters:
    """Bytes that really went to and came from storage, not those that the page cache answered."""
    values = dict(line.split(": ", 1) for line in text.splitlines())
    return {"read_bytes": float(values["read_bytes"]), "written_bytes": float(values["write_bytes"])}


def host_counters() -> Counters:
    """CPU seconds of the whole host since boot, over all its CPUs: what was used, and what the hypervisor
    took; and how many threads run or wait for a CPU, now (`runnable`)."""
    lines = kernel_files.text("/proc/stat").splitlines()
    # user nice system idle iowait irq softirq steal guest guest_nice; guest time is part of user.
    values = [int(value) / TICKS_PER_S for value in lines[0].split()[1:]]
    user, nice, system, _idle, _wait, interrupt, soft_interrupt, steal = values[:8]
    found = {"host_busy_s": user + nice + system + interrupt + soft_interrupt, "steal_s": steal}
    runnable = [line.split()[1] for line in lines if line.startswith("procs_running ")]
    # The one that reads is among them.
    return found | ({"runnable": max(0.0, float(runnable[0]) - 1.0)} if runnable else {})


DISKSTATS, BLOCK_DEVICES, NETWORK = "/proc/diskstats", "/sys/block", "/proc/net/dev"
LOOPBACK = "lo"


class DeviceCounters:
    """Running totals over the host's disks and network devices. Partitions, loop devices and what is made of
    disks are left out, because their requests are a disk's as well."""

    def __init__(self) -> None:
        self._disks = frozenset(
            name
            for name in _names_or_none(BLOCK_DEVICES)
            if "device" in _names_or_none(f"{BLOCK_DEVICES}/{name}")
        )

    def read(self) -> Counters:
        """Totals so far; none of what the kernel does not show here."""
        return self._of_disks() | _of_network()

    def _of_disks(self) -> Counters:
        """Requests, the seconds that they took altogether (`disk_wait_s`), and seconds by how many were under
        way (`disk_queue_s`), which is their mean number over a second (Documentation/admin-guide/iostats)."""
        total = dict.fromkeys(("disk_reads", "disk_writes", "disk_wait_s", "disk_queue_s"), 0.0)
        seen = False
        for line in (kernel_files.text_or_none(DISKSTATS) or "").splitlines():
            fields = line.split()
            if len(fields) < 14 or fields[2] not in self._disks:
                continue
            seen = True
            reads, read_ms, writes, write_ms, queue_ms = (float(fields[at]) for at in (3, 6, 7, 10, 13))
            total["disk_reads"] += reads
            total["disk_writes"] += writes
            total["disk_wait_s"] += (read_ms + write_ms) / 1e3
            total["disk_queue_s"] += queue_ms / 1e3
        return total if seen else {}


def _names_or_none(folder: str) -> list[str]:
    try:
        return kernel_files.names(folder)
    except kernel_files.UnreadableFile:
        return []


def _of_network() -> Counters:
    """Bytes over all devices but loopback; none where there is no other."""
    counts = [
        (float(fields[0]), float(fields[8]))
        for line in (kernel_files.text_or_none(NETWORK) or "").splitlines()
        for name, _, rest in (line.partition(":"),)
        if rest and name.strip() != LOOPBACK and len(fields := rest.split()) > 8
    ]
    if not counts:
        return {}
    received, sent = (sum(one) for one in zip(*counts, strict=True))
    return {"network_received_bytes": received, "network_sent_bytes": sent}


PROC = Path("/proc")
BLOCK_BYTES = 512
"""Of `st_blocks`, whatever the file system's own blocks are (stat(2))."""
RESIDENT, PRIVATE = "resident_bytes", "private_bytes"
MEMORY_LIMITS = ("memory.max", "memory.limit_in_bytes")
"""Of a control group, by the version of control groups."""


def held(members: Iterable[int]) -> tuple[dict[str, float], dict[str, str]]:
    """What processes hold together, by gauge; and for each gauge that could not be read the reason. A process
    that ends meanwhile holds nothing. Processes that share no memory have no such gauge.

    What they share counts once, as the process that holds most of it has it, because each of PostgreSQL's
    touches the same buffers.
    """
    own_bytes = private_bytes = threads = open_files = 0.0
    files_bytes = shared_bytes = 0.0
    missing: dict[str, str] = {}
    for process_id in members:
        folder = PROC / str(process_id)
        lines: dict[str, float] = {}
        with suppress(kernel_files.Gone):
            lines = _status(folder)
            try:
                open_files += len(kernel_files.names(folder / "fd"))
            except kernel_files.Gone:
                raise
            except kernel_files.UnreadableFile as hidden:
                missing["open_files"] = hidden.message
        own_bytes += lines.get("RssAnon", 0.0)
        private_bytes += lines.get("RssAnon", 0.0) + lines.get("VmSwap", 0.0)
        files_bytes = max(files_bytes, lines.get("RssFile", 0.0))
        shared_bytes = max(shared_bytes, lines.get("RssShmem", 0.0))
        threads += lines.get("Threads", 0.0)
    total = {
        RESIDENT: own_bytes + files_bytes + shared_bytes,
        PRIVATE: private_bytes,
        SHARED: shared_bytes,
        "threads": threads,
        "open_files": open_files,
    }
    left_out = {*missing, *([] if shared_bytes else [SHARED])}
    return {gauge: value for gauge, value in total.items() if gauge not in left_out}, missing


def _status(folder: Path) -> dict[str, float]:
    """The lines of /proc/PID/status that are numbers, memory in bytes."""
    found: dict[str, float] = {}
    for line in kernel_files.text(folder / "status").splitlines():
        name, _, value = line.partition(":")
        amount, *unit = value.split()[:2] or [""]
        if amount.isdigit():
            found[name] = float(amount) * (1024 if unit == ["kB"] else 1)
    return found


def occupied_bytes(folder: Path) -> float:
    """What the files below a folder occupy of its disk. A file that goes meanwhile occupies nothing."""
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
                continue
            try:
                total += entry.stat(follow_symlinks=False).st_blocks
            except FileNotFoundError:
                continue
    return float(total * BLOCK_BYTES)


def limits_of(members: Sequence[int], data: Path) -> dict[str, Limit]:
    """How much the processes may hold. Descriptors are limited process by process, so those of several have
    no limit that they share."""
    memory = _memory_limit(members)
    threads = PROC / "sys" / "kernel" / "threads-max"
    found = {
        "resident_bytes": memory,
        "private_bytes": memory,
        "heap_bytes": memory,
    }
    if (most := kernel_files.text_or_none(threads)) is not None:
        found["threads"] = Limit(most=float(most), source=str(threads))
    if data.is_dir():
        room = occupied_bytes(data) + usable_disk_bytes(data)
        found["disk_bytes"] = Limit(most=room, source="the room on the disk that holds the data")
    if len(members) == 1 and (files := _file_limit(members[0])) is not None:
        found["open_files"] = files
    return found


def _memory_limit(members: Sequence[int]) -> Limit:
    """The host's memory, or the least that a control group above the first process allows."""
    least = Limit(most=float(memory_bytes()), source="the host's memory")
    for group in cgroups.groups_of(members[0], "memory") if members else ():
        for path in (group / name for name in MEMORY_LIMITS):
            text = kernel_files.text_or_none(path) or "max"
            if text != "max" and float(text) < least.most:
                least = Limit(most=float(text), source=str(path))
    return least


def _file_limit(process_id: int) -> Limit | None:
    """The soft limit of a process; None where there is none, or it is gone."""
    path = PROC / str(process_id) / "limits"
    lines = (kernel_files.text_or_none(path) or "").splitlines()
    soft = next((line.split()[3] for line in lines if line.startswith("Max open files")), "unlimited")
    return None if soft == "unlimited" else Limit(most=float(soft), source=f"Max open files of {path}")


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
            told = {name for name, gauge in GAUGES.items() if gauge.source is GaugeSource.ENGINE}
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
