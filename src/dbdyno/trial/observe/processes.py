"""What the kernel counts of the server's processes and threads, read from /proc (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dbdyno.host import kernel_files
from dbdyno.host.process import families, family

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

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
    thread. So each is followed by itself: what it showed last stays in the total when it is gone.
    """

    roots: tuple[int, ...]
    _last: dict[tuple[str, int, int], Counters] = field(default_factory=dict)

    def read(self) -> tuple[Counters, dict[str, str]]:
        """Totals so far, and for each name that could not be read the reason."""
        missing: dict[str, str] = {}
        members = families(self.roots)
        held = [self._read_process(process_id, missing) for process_id in members]
        totals: Counters = {"resident_bytes": resident_bytes(held)}
        for counters in self._last.values():
            for name, value in counters.items():
                totals[name] = totals.get(name, 0.0) + value
        return totals, missing

    def _read_process(self, process_id: int, missing: dict[str, str]) -> Held:
        folder = f"/proc/{process_id}"
        try:
            fields = _stat(folder)
            started = int(fields[19])
            self._last["cpu", process_id, started] = {
                "cpu_user_s": int(fields[11]) / TICKS_PER_S,
                "cpu_system_s": int(fields[12]) / TICKS_PER_S,
            }
            try:
                self._last["io", process_id, started] = _io(_text(f"{folder}/io"))
            except kernel_files.Gone:
                raise
            except kernel_files.Unreadable as hidden:
                missing["read_bytes"] = missing["written_bytes"] = hidden.message
            for thread_id in kernel_files.names(f"{folder}/task"):
                self._read_thread(f"{folder}/task/{thread_id}", int(thread_id), started)
            _, resident, shared, *_ = map(int, _text(f"{folder}/statm").split())
            return Held((resident - shared) * PAGE_BYTES, shared * PAGE_BYTES)
        except kernel_files.Gone:
            return Held(0, 0)

    def _read_thread(self, folder: str, thread_id: int, started: int) -> None:
        try:
            status, schedule = _text(f"{folder}/status"), _text(f"{folder}/schedstat").split()
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
                fields = _stat(f"/proc/{process_id}")
            except kernel_files.Gone:
                continue
            self._last[f"{process_id}:{fields[19]}"] = int(fields[11]) + int(fields[12])
        return sum(self._last.values()) / TICKS_PER_S


KERNEL_THREADS = "/proc/2/task/2/children"


@dataclass
class KernelThreads:
    """CPU seconds of the kernel's own threads: write-back, a file system's journal, io_uring's workers.

    They work for whoever asked, here mostly for the server, and are nobody's process.
    """

    _times: _CpuTimes = field(default_factory=_CpuTimes)

    def read(self) -> Counters:
        """`kernel_cpu_s`, 0 where the kernel does not list them (CONFIG_PROC_CHILDREN)."""
        try:
            threads = _text(KERNEL_THREADS).split()
        except kernel_files.Unreadable:
            threads = []
        return {"kernel_cpu_s": self._times.read(map(int, threads))}


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


def _stat(folder: str) -> list[str]:
    """The fields of stat from the third on: the second, the command's name, may hold blanks and brackets."""
    return _text(f"{folder}/stat").rpartition(")")[2].split()


def _text(path: str) -> str:
    # Plain system calls: /proc is read several times a second beside a measurement.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 16384).decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise kernel_files.refused(path, error) from None


def _status_number(status: str, name: str) -> float:
    start = status.index(name) + len(name)
    return float(status[start : status.index("\n", start)])


def _io(text: str) -> Counters:
    """Bytes that really went to and came from storage, not those that the page cache answered."""
    values = dict(line.split(": ", 1) for line in text.splitlines())
    return {"read_bytes": float(values["read_bytes"]), "written_bytes": float(values["write_bytes"])}


def host_counters() -> Counters:
    """CPU seconds of the whole host since boot, over all its CPUs: what was used, and what the hypervisor
    took."""
    # user nice system idle iowait irq softirq steal guest guest_nice; guest time is part of user.
    values = [
        int(value) / TICKS_PER_S for value in kernel_files.text("/proc/stat").partition("\n")[0].split()[1:]
    ]
    user, nice, system, _idle, _wait, interrupt, soft_interrupt, steal = values[:8]
    return {"host_busy_s": user + nice + system + interrupt + soft_interrupt, "steal_s": steal}
