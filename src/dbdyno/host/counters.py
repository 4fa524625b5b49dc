"""Hardware counters of the server's threads, by perf_event_open(2).

One set of counters is opened for each thread that is there at the start, and inherited by every thread that
it starts later: a server's thread per connection is counted without looking for it. Where the CPU has fewer
counters than are asked for, the kernel takes turns; values are then scaled by enabled over running time, as
perf(1) does.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbdyno.host import kernel_files

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
                opened = [_open(kind, configuration, thread) for thread in threads]
                self._open[name] = [descriptor for descriptor, _ in opened]
                self.with_kernel = self.with_kernel and all(with_kernel for _, with_kernel in opened)
            except OSError as error:
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
