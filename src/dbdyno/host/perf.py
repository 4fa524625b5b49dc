"""Sampling the server's threads with perf(1) while a load runs, and reading what it wrote.

Which way of finding callers works depends on the CPU and on how the server was built, so it is tried on the
running server: frame pointers cost least, the CPU's branch stack needs hardware that guests seldom have,
DWARF copies a piece of each stack and works where unwind tables are kept.

Hardware counters of the server's threads, by perf_event_open(2).

One set of counters is opened for each thread that is there at the start, and inherited by every thread that
it starts later: a server's thread per connection is counted without looking for it. Where the CPU has fewer
counters than are asked for, the kernel takes turns; values are then scaled by enabled over running time, as
perf(1) does.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
import shutil
import signal
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType

from dbdyno.errors import Blocked, DynoError
from dbdyno.host import kernel_files
from dbdyno.host.process import die_with_parent, families

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(platform.machine(), -1)
PERF_TYPE_HARDWARE = 0
PERF_TYPE_HW_CACHE = 3
PERF_FLAG_FD_CLOEXEC = 8
READ_ENABLED_AND_RUNNING = 1 | 2
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6

_DATA_TLB, _READ, _MISS = 3, 0 << 8, 1 << 16

EVENTS = {
    "cycles": (PERF_TYPE_HARDWARE, 0),
    "instructions": (PERF_TYPE_HARDWARE, 1),
    "cache_misses": (PERF_TYPE_HARDWARE, 3),
    "dtlb_load_misses": (PERF_TYPE_HW_CACHE, _DATA_TLB | _READ | _MISS),
    "stalled_cycles_frontend": (PERF_TYPE_HARDWARE, 7),
    "stalled_cycles_backend": (PERF_TYPE_HARDWARE, 8),
}
"""What is counted, where the CPU can (linux/perf_event.h). No more than CPUs have counters for without taking
turns: a guest was seen whose sixth counter stayed at zero."""

_ATTRIBUTE_BYTES = 136
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class HardwareCounters:
    """Counters over the threads of some processes. `missing` says of each that cannot be read why;
    `with_kernel` whether work in the kernel is counted too."""

    process_ids: tuple[int, ...]
    missing: dict[str, str] = field(default_factory=dict)
    with_kernel: bool = True
    _open: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threads = [thread for process_id in self.process_ids for thread in _threads(process_id)]
        for name, (kind, configuration) in EVENTS.items():
            try:
                self._open[name] = []
                for thread in threads:
                    # A thread may end between its being listed and being counted.
                    with suppress(ProcessLookupError):
                        descriptor, with_kernel = _open(kind, configuration, thread)
                        self._open[name].append(descriptor)
                        self.with_kernel = self.with_kernel and with_kernel
            except OSError as error:
                for descriptor in self._open.pop(name):
                    os.close(descriptor)
                self.missing[name] = _why(error)

    def read(self) -> dict[str, float]:
        """Running totals since the start; a counter that never got its turn is left out."""
        totals: dict[str, float] = {}
        for name, descriptors in self._open.items():
            values = [_read(descriptor) for descriptor in descriptors]
            if any(running for _, running in values):
                totals[name] = sum(value for value, _ in values)
        return totals

    def close(self) -> None:
        for descriptor in [one for descriptors in self._open.values() for one in descriptors]:
            os.close(descriptor)
        self._open.clear()


@contextmanager
def counting(name: str) -> Iterator[Callable[[], float]]:
    """Counts one event of the calling thread; gives what tells the total so far. Raises OSError."""
    descriptor, _ = _open(*EVENTS[name], 0)
    try:
        yield lambda: _read(descriptor)[0]
    finally:
        os.close(descriptor)


def counts(name: str) -> str:
    """Empty when this host really counts an event of a thread that works for a moment; else why not."""
    try:
        with counting(name) as total:
            sum(range(200_000))
            seen = total()
    except OSError as error:
        return _why(error)
    # Another event may well not happen in a moment of arithmetic, and is believed at zero.
    return "" if seen or name not in ("cycles", "instructions") else "accepted, and stays at zero"


def _threads(process_id: int) -> list[int]:
    try:
        return [int(name) for name in kernel_files.names(f"/proc/{process_id}/task")]
    except kernel_files.Gone:
        return []


def _open(kind: int, configuration: int, thread: int) -> tuple[int, bool]:
    """A descriptor of one counter on one thread and those it starts, and whether kernel work counts, as it
    does where permitted."""
    for exclude in (EXCLUDE_HYPERVISOR, EXCLUDE_HYPERVISOR | EXCLUDE_KERNEL):
        attribute = struct.pack(
            "=IIQQQQQ",
            kind,
            _ATTRIBUTE_BYTES,
            configuration,
            0,
            0,
            READ_ENABLED_AND_RUNNING,
            INHERIT | exclude,
        ).ljust(_ATTRIBUTE_BYTES, b"\0")
        descriptor = _LIBC.syscall(PERF_EVENT_OPEN, attribute, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)
        if descriptor >= 0:
            return int(descriptor), not exclude & EXCLUDE_KERNEL
        failure = ctypes.get_errno()
        if failure not in (1, 13):
            break
    raise OSError(failure, os.strerror(failure))


def _read(descriptor: int) -> tuple[float, int]:
    value, enabled, running = struct.unpack("=QQQ", os.read(descriptor, 24))
    return (value * enabled / running if running else 0.0), running


def _why(error: OSError) -> str:
    if error.errno in (1, 13):
        return "not permitted: kernel.perf_event_paranoid must be 2 or less, or dyno run as root"
    if error.errno in (2, 19, 22, 95):
        return "this CPU or its hypervisor has no such counter"
    return str(error.strerror)


EVENT = "cpu-clock"
"""CPU time, by the kernel's timer: the unit that is reported, on guests without counters too. The CPU's own
counters are all taken by the observer."""
PROBE_S = 0.7
PROBES_MOST_S = 2.5
"""What all probes take at most: the load must run so long before what counts."""
DEPTH_LEAST = 5
"""Callers of the user's side below which a way of unwinding is held to have failed: without frame pointers
it ends after one to three frames."""
LOOK_S = 0.1
"""How long perf may have ended before that is seen."""
STOP_S, READ_S = 20.0, 240.0


@dataclass(frozen=True)
class SamplingWay:
    """One way to find the callers: its name, what perf calls it, and samples per second and CPU."""

    name: str
    call_graph: str
    samples_per_s: int


WAYS = (
    SamplingWay("frame pointers", "fp", 499),
    SamplingWay("the CPU's branch stack (LBR)", "lbr", 499),
    SamplingWay("DWARF unwind tables", "dwarf,8192", 199),
)


@dataclass(frozen=True)
class Sample:
    """One sample: when (monotonic seconds), its weight (events since the last one), and the frames from the
    root to the leaf as (function, module)."""

    time_s: float
    weight: int
    frames: tuple[tuple[str, str], ...]


class Sampler:
    """Samples processes and the threads they start, from shortly after it is entered until it is left.

    Raises Blocked from the constructor where perf is missing or not permitted. After it was left, `way` and
    `samples` tell what was seen.
    """

    def __init__(self, folder: Path) -> None:
        self._perf = _perf()
        _require_permission(self._perf)
        self.way = WAYS[-1]
        self._folder = folder
        self._ids: tuple[int, ...] = ()
        self._over = threading.Event()
        self._failure = ""

    def on(self, process_ids: tuple[int, ...]) -> Sampler:
        """Names the processes to sample."""
        self._ids = process_ids
        return self

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._sample, name="perf", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def samples(self) -> Iterator[Sample]:
        """What was seen, in perf's order. Raises DynoError when perf failed."""
        if self._failure or not self._data.exists():
            raise DynoError(f"perf could not sample the server: {self._failure or 'the load was too short'}")
        return read_script(self._script(self._data))

    @property
    def _data(self) -> Path:
        return self._folder / "perf.data"

    def _sample(self) -> None:
        try:
            self.way = self._working_way()
            if not self._over.is_set():
                self._record(self.way, self._data, None)
        except (DynoError, OSError, subprocess.SubprocessError) as error:
            self._failure = str(error)

    def _working_way(self) -> SamplingWay:
        """The first way that finds callers on this server, under this load; the last when none is sure to."""
        for way in WAYS[:-1]:
            data = self._folder / "probe.data"
            try:
                self._record(way, data, PROBE_S)
                if _depth(read_script(self._script(data))) >= DEPTH_LEAST:
                    return way
            except DynoError:
                continue
            finally:
                data.unlink(missing_ok=True)
        return WAYS[-1]

    def _record(self, way: SamplingWay, data: Path, duration_s: float | None) -> None:
        """Samples all of the processes that are there: perf samples none where one of them has ended."""
        there = families(self._ids)
        while there:
            try:
                return self._record_of(there, way, data, duration_s)
            except DynoError:
                left = families(there)
                if set(there) <= set(left):
                    raise
                there = tuple(one for one in there if one in left)
        raise DynoError("all of its processes had ended")

    def _record_of(
        self, process_ids: tuple[int, ...], way: SamplingWay, data: Path, duration_s: float | None
    ) -> None:
        command = [self._perf, "record", "--quiet", "--event", EVENT, "--freq", str(way.samples_per_s),
                   "--clockid", "CLOCK_MONOTONIC", "--call-graph", way.call_graph, "--output", str(data),
                   "--pid", ",".join(map(str, process_ids))]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=die_with_parent()
        ) as child:
            until_s = time.monotonic() + (math.inf if duration_s is None else duration_s)
            # What perf will not sample it says at once, and not when the load has ended.
            while child.poll() is None and (left_s := until_s - time.monotonic()) > 0.0:
                if self._over.wait(min(left_s, LOOK_S)):
                    break
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=STOP_S)[1].decode(errors="replace")
        # perf ends by the signal that it was asked to end with.
        if child.returncode not in (0, -signal.SIGINT, 128 + signal.SIGINT):
            raise DynoError(_complaint(said))

    def _script(self, data: Path) -> str:
        command = [self._perf, "script", "--no-inline", "--ns", "--input", str(data),
                   "--fields", "comm,tid,time,period,event,ip,sym,dso"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, timeout=READ_S, preexec_fn=die_with_parent())
        if done.returncode != 0:
            raise DynoError(_complaint(done.stderr.decode(errors="replace")))
        return done.stdout.decode(errors="replace")


def _perf() -> str:
    found = shutil.which("perf")
    if found is None:
        hint = "install it: apt install linux-perf (Debian), linux-tools-generic (Ubuntu), perf (Fedora)"
        raise Blocked("perf", "perf is not on this machine", hint)
    return found


def _require_permission(perf: str) -> None:
    """Raises Blocked where perf may not sample, found by doing it."""
    command = [perf, "record", "--quiet", "--event", EVENT, "--output", "/dev/null", "--", "true"]
    done = subprocess.run(command, capture_output=True, timeout=STOP_S)
    if done.returncode != 0:
        said = _complaint(done.stderr.decode(errors="replace"))
        hint = "as root: sysctl kernel.perf_event_paranoid=1; in a container, the capability PERFMON as well"
        raise Blocked("perf", f"perf may not sample here: {said}", hint)


def _complaint(said: str) -> str:
    """What perf complained of: the line after `Error:`, which advice follows, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it said nothing"]
    return next((told for head, told in pairwise(lines) if head == "Error:"), lines[-1])


def _depth(samples: Iterator[Sample]) -> float:
    """The median count of frames outside the kernel, over the samples that have any."""
    depths = [
        depth for sample in samples if (depth := sum(not in_kernel(module) for _, module in sample.frames))
    ]
    return statistics.median(depths) if depths else 0.0


def in_kernel(module: str) -> bool:
    """Whether a frame's module is the kernel or a part of it."""
    return module.startswith("[kernel") or module.endswith((".ko", ".ko.xz")) or module == "[guest.kernel]"


_HEAD = re.compile(r"^(?P<comm>.*\S)\s+\d+\s+(?P<time>\d+\.\d+):\s+(?P<period>\d+)\s+\S+:?\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<function>.*) \((?P<module>.*)\)$")
_DELETED = " (deleted))"
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")


def read_script(text: str) -> Iterator[Sample]:
    """The samples in the text of `perf script --fields comm,tid,time,period,event,ip,sym,dso`.

    A blank line ends a sample. Lines of neither form are perf's remarks, and are left out.
    """
    time_s, weight, frames = 0.0, 0, list[tuple[str, str]]()
    # perf ends lines with a line feed alone; a symbol may hold what Python takes for an end of line.
    for line in [*text.split("\n"), ""]:
        head = _HEAD.match(line) if not line[:1].isspace() else None
        # A file that is gone is marked within the brackets; without that the last pair of them is the module.
        frame = _FRAME.match(f"{line.removesuffix(_DELETED)})" if line.endswith(_DELETED) else line)
        if frame is not None:
            frames.append((_OFFSET.sub("", frame["function"]), frame["module"]))
        elif head is not None or not line.strip():
            if frames:
                yield Sample(time_s, weight, tuple(reversed(frames)))
            frames = []
            if head is not None:
                time_s, weight = float(head["time"]), int(head["period"])
