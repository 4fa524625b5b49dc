"""Starting processes that never outlive Dyno, and that are ended as a whole; and tasks that are carried
out at the same time, each by a fork that ends with this process.

What one process alone may do, such as what changes the host, a fork asks this process for. It answers one
question after the other. So no fork holds a lock for which others would wait for ever once it is killed.
"""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import resource
import signal
import socket
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import IO, Any, TypeVar

import psutil

from dbdyno.errors import DynoError
from dbdyno.host import kernel_files
from dbdyno.host.kernel_files import UnreadableFile, by_psutil

PEER = struct.Struct("3i")
"""The process, user and group that SO_PEERCRED tells (unix(7))."""
CONNECT_S = 5.0
DEAD = "ZX"
"""States of processes that have ended and are still listed."""


def at_socket(path: Path) -> int | None:
    """The process that listens on a socket file; None where none does, or where it hides."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(str(path))
        except OSError:
            return None
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
    process_id: int = PEER.unpack(told)[0]
    return process_id or None


def at_port(port: int) -> int | None:
    """The process that listens on a TCP port; None where none does, or where the kernel hides it from this
    user."""
    try:
        connections = by_psutil(partial(psutil.net_connections, "tcp"), "/proc/net/tcp")
    except (psutil.AccessDenied, UnreadableFile):
        return None
    listening = (
        each.pid
        for each in connections
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid
    )
    # A server's own processes share its socket; the first of them is the oldest.
    return min(listening, default=None)


def is_here(host: str) -> bool:
    """Whether a name of a host stands for this one."""
    return host in ("", "localhost", "::1", socket.gethostname()) or host.startswith("127.")


PR_SET_PDEATHSIG = 1
PR_SET_THP_DISABLE = 41
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}.get(os.uname().machine, -1)
MPOL_BIND = 2
GONE_S = 60.0
"""How long the kernel may take to end a process that was killed: it first frees its memory."""
STILL_S, LOOK_S = 5.0, 0.001
"""How long threads may take until they stand still, and how often that is looked at."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: IO[bytes],
    affinity: Iterable[int] = (),
    cgroups: Iterable[Path] = (),
    before_exec: Iterable[Callable[[], None]] = (),
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts `command` in a session of its own; the kernel kills it when the calling *thread* ends, however
    it ends.

    Each of `before_exec` is called in the child just before. Output and errors go to `output`. Raises OSError
    or SubprocessError when it cannot be run.
    """
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
        preexec_fn=confine(affinity, cgroups, before_exec),
    )


_cores: list[tuple[int, int]] = []
"""The limits of core dumps that this process began with, once it leaves none itself."""


def leave_no_core() -> None:
    """From now on neither this process nor its children leave a core dump, which would hold passwords. A
    limit of one byte keeps a program from being handed one, too (core(5))."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    _cores[:] = [(soft, hard)]
    resource.setrlimit(resource.RLIMIT_CORE, (1 if hard else 0, hard))


def may_leave_a_core() -> None:
    """Undoes that in a child that is a server: a core of one tells why it crashed, and holds no password but
    of its own."""
    for limits in _cores:
        resource.setrlimit(resource.RLIMIT_CORE, limits)


def die_with_parent() -> Callable[[], None]:
    """A `preexec_fn` that ties the child to the life of the calling thread."""
    return confine()


def confine(
    affinity: Iterable[int] = (),
    cgroups: Iterable[Path] = (),
    before_exec: Iterable[Callable[[], None]] = (),
) -> Callable[[], None]:
    """A `preexec_fn` that confines the child to CPUs and groups, and ties it to the calling thread's life.

    Between fork and exec only system calls may be made, as other threads may hold locks.
    """
    parent, cpus, steps = os.getpid(), tuple(affinity), tuple(before_exec)
    members = tuple(str(folder / "cgroup.procs") for folder in cgroups)

    def confine_child() -> None:
        for path in members:
            _join(path)
        if cpus:
            os.sched_setaffinity(0, cpus)
        for step in steps:
            step()
        # Last, because a change of user clears it (prctl(2)).
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)

    return confine_child


def bind(process_ids: Iterable[int], cpus: Iterable[int]) -> None:
    """Moves running processes, with all that descend from them, to `cpus`. Threads that they start later
    inherit it. Raises OSError where none of the CPUs may be used."""
    allowed = set(cpus)
    for member in families(process_ids):
        # Twice: a thread that was started meanwhile may have inherited what was.
        for _ in range(2):
            for task in _tasks(member):
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(task, allowed)


def _tasks(process_id: int) -> list[int]:
    """The threads of a process; none where it is gone."""
    try:
        return [int(task) for task in kernel_files.names(f"/proc/{process_id}/task")]
    except kernel_files.Gone:
        return []


def _join(members: str) -> None:
    descriptor = os.open(members, os.O_WRONLY)
    os.write(descriptor, b"0")
    os.close(descriptor)


class HugePageFlags(IntEnum):
    """How far a process is kept from transparent huge pages: the flags of PR_SET_THP_DISABLE (prctl(2))."""

    NEVER = 0
    ADVISED = 2


def limit_huge_pages(pages: HugePageFlags) -> Callable[[], None]:
    """For `before_exec`: forbids transparent huge pages, or all but those that the process asks for by
    madvise.

    Children inherit the limit, and exec keeps it. `ADVISED` needs Linux 6.18; the step raises OSError
    without.
    """

    def limit() -> None:
        if _LIBC.prctl(PR_SET_THP_DISABLE, 1, int(pages), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_THP_DISABLE)")

    return limit


def bind_memory(node: int) -> Callable[[], None]:
    """For `before_exec`: all memory comes from one NUMA node (set_mempolicy(2), MPOL_BIND)."""
    mask = (ctypes.c_ulong * 16)()
    mask[node // 64] = 1 << (node % 64)

    def bind() -> None:
        if _LIBC.syscall(SET_MEMPOLICY, MPOL_BIND, ctypes.byref(mask), 16 * 64) != 0:
            raise OSError(ctypes.get_errno(), "set_mempolicy")

    return bind


def can_do(step: Callable[[], None]) -> bool:
    """Whether a step for `before_exec` succeeds here, found by doing it in a child."""
    return refusal(step) == 0


def refusal(step: Callable[[], None]) -> int:
    """The errno with which a step for `before_exec` fails here, found by doing it in a child; 0 when it
    succeeds.
    """
    child = os.fork()
    if child == 0:
        try:
            step()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or errno.EPERM)
        finally:
            os._exit(errno.EPERM)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def family(process_id: int) -> tuple[int, ...]:
    """The process and all that descend from it, parents first; empty when it is gone or hides from this
    user. Raises UnreadableFile."""
    return families((process_id,))


def families(process_ids: Iterable[int]) -> tuple[int, ...]:
    """The processes and all that descend from them, each once: some may descend from others among them."""
    return tuple(stats_of_families(process_ids))


def of_each(process_ids: Iterable[int], read: Callable[[int], Found]) -> Iterator[Found]:
    """What is read of each process that is still there: of a server's, a session or a worker may end between
    its being listed and being looked at. Raises Gone where all have ended."""
    gone, some_left = None, False
    for process_id in process_ids:
        try:
            found = read(process_id)
        except kernel_files.Gone as ended:
            gone = ended
        else:
            some_left = True
            yield found
    if gone is not None and not some_left:
        raise gone


def stat_fields(process_id: int | str) -> list[str]:
    """What the kernel tells of a process in `stat`, from its state on: before that stands its name, which may
    hold blanks and brackets (proc_pid_stat(5)). Raises Gone, or UnreadableFile."""
    return kernel_files.counters_text(f"/proc/{process_id}/stat").rpartition(")")[2].split()


PARENT_OF_THREADS = 2
"""The process that starts the kernel's threads has this number, where they are seen at all."""
FLAGS, OF_KERNEL = 6, 0x00200000
"""Among `stat_fields`; and the flag PF_KTHREAD (linux/sched.h)."""


def kernel_threads() -> frozenset[int]:
    """The kernel's threads by their numbers. Some may be missing, or all where they are not told (proc(5),
    `children`), and none is a process of a user's."""
    try:
        if not int(stat_fields(PARENT_OF_THREADS)[FLAGS]) & OF_KERNEL:
            return frozenset()
        told = kernel_files.counters_text(f"/proc/{PARENT_OF_THREADS}/task/{PARENT_OF_THREADS}/children")
    except UnreadableFile:
        return frozenset()
    # A blank ends each number, so what was cut off has none.
    return frozenset(map(int, told.rpartition(" ")[0].split()))


def stats_of_families(process_ids: Iterable[int], dead: bool = False) -> dict[int, list[str]]:
    """`families`, with the `stat_fields` of each; with the `dead` that nobody has waited for. All of the
    host's processes are looked at once, because the server of a thousand sessions is a thousand of them; not
    the kernel's own threads, which are most of an idle host's. Raises UnreadableFile."""
    every, children = dict[int, list[str]](), defaultdict[int, list[int]](list)
    kernels = kernel_threads()
    for process_id in (int(name) for name in kernel_files.names("/proc") if name.isdigit()):
        if process_id not in kernels:
            # A worker may end between its being listed and being looked at; that must not hide its relatives.
            with suppress(UnreadableFile):
                every[process_id] = stat_fields(process_id)
    for process_id, (state, parent, *_) in every.items():
        if dead or state not in DEAD:
            children[int(parent)].append(process_id)
    found: dict[int, list[str]] = {}
    ahead = [one for one in reversed([*process_ids]) if one in every and every[one][0] not in DEAD]
    while ahead:
        process_id = ahead.pop()
        if process_id not in found:
            found[process_id] = every[process_id]
            ahead += reversed(children[process_id])
    return found


CPU_CLOCK = 2
"""Which clock of a process its number means to `clock_gettime`: CPUCLOCK_SCHED (linux/posix-timers.h)."""
OF_CHILDREN = slice(13, 15)
"""Among `stat_fields`: the ticks of children that were waited for."""
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTaken:
    """Seconds of CPU that processes have taken so far, to the nanosecond, those that nobody has waited for
    yet included; and those of children that were waited for, which come in the kernel's ticks."""

    by_process: Mapping[int, float]
    of_ended_s: float

    @property
    def total_s(self) -> float:
        return sum(self.by_process.values()) + self.of_ended_s

    def since(self, before: CpuTaken) -> float:
        """Seconds that were taken in between. What has ended meanwhile counts by ticks."""
        own_s = sum(taken_s - before.by_process.get(one, 0.0) for one, taken_s in self.by_process.items())
        gone = before.by_process.keys() - self.by_process.keys()
        ended_s = self.of_ended_s - before.of_ended_s - sum(before.by_process[one] for one in gone)
        # Of a process that was there before, the ticks say less than a tick for certain.
        return own_s + (ended_s if ended_s > TICK_S or not gone else 0.0)


def cpu_taken(process_ids: Iterable[int]) -> CpuTaken:
    """By the processes and all that descend from them. Raises UnreadableFile."""
    by_process, ticks = dict[int, float](), 0
    for process_id, fields in stats_of_families(process_ids, dead=True).items():
        ticks += sum(map(int, fields[OF_CHILDREN]))
        with suppress(OSError):
            by_process[process_id] = time.clock_gettime(~process_id << 3 | CPU_CLOCK)
    return CpuTaken(by_process, ticks * TICK_S)


@contextmanager
def standing_still(process_ids: Iterable[int]) -> Iterator[bool]:
    """Stops processes and their descendants, and lets those that are left go on. Yields whether all of their
    threads stand still, because one that is in a call of the kernel first comes to its end."""
    members = families(process_ids)
    try:
        _send(members, signal.SIGSTOP)
        yield _stand_still(members)
    finally:
        _send(members, signal.SIGCONT)


def _send(process_ids: Iterable[int], number: signal.Signals) -> None:
    for process_id in process_ids:
        with suppress(ProcessLookupError):
            os.kill(process_id, number)


def _stand_still(process_ids: Sequence[int]) -> bool:
    deadline = time.monotonic() + STILL_S
    while not all(_is_still(process_id, task) for process_id in process_ids for task in _tasks(process_id)):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_S)
    return True


def _is_still(process_id: int, task: int) -> bool:
    """Whether a thread is stopped or has ended."""
    try:
        fields = kernel_files.text(f"/proc/{process_id}/task/{task}/stat").rpartition(")")[2]
    except kernel_files.Gone:
        return True
    return fields.split()[0] in "TtZX"


def how_it_ended(returncode: int) -> str:
    """An exit code in words."""
    if returncode < 0:
        try:
            return f"was killed by {signal.Signals(-returncode).name}"
        except ValueError:
            return f"was killed by signal {-returncode}"
    return f"ended with exit code {returncode}"


def kill_family(child: subprocess.Popen[bytes]) -> None:
    """Kills a child of ours with all its descendants and waits until none is left. Raises DynoError where the
    kernel does not let go of it."""
    members = []
    for process_id in family(child.pid):
        try:
            members.append(psutil.Process(process_id))
        except psutil.NoSuchProcess:
            continue
    if child.poll() is None:
        child.kill()
    for member in members:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    try:
        child.wait(GONE_S)
    except subprocess.TimeoutExpired:
        raise DynoError(
            f"process {child.pid} was killed and is still there after {GONE_S:g} s",
            "it waits in the kernel, for a disk say: look at the kernel's log",
        ) from None
    psutil.wait_procs(members, timeout=GONE_S)


Question = TypeVar("Question")
Answer = TypeVar("Answer")
Found = TypeVar("Found")
Task = Callable[[Callable[[Question], Answer]], Found]
"""Is given a way to ask this process."""
FORK = multiprocessing.get_context("fork")
"""So that a task knows all that this process knows."""


@dataclass(frozen=True)
class _Asked:
    question: Any


@dataclass(frozen=True)
class _Told:
    found: Any


def carry_out(
    tasks: Sequence[Task[Question, Answer, Found]], at_a_time: int, answer: Callable[[Question], Answer]
) -> list[Found | None]:
    """Carries out tasks, and returns what each of them found: None for one that was killed, and for one that
    raised, because who needs what it makes looks for that, and meets the cause again. Questions, answers and
    what is found are pickled. Nothing of the tasks goes on after an interruption."""
    found: list[Found | None] = [None] * len(tasks)
    left = list(enumerate(tasks))
    going: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while left or going:
            while left and len(going) < at_a_time:
                number, task = left.pop(0)
                line, of_fork = FORK.Pipe()
                process = FORK.Process(target=partial(_quietly, die_with_parent(), task, of_fork))
                going[line] = number, process
                process.start()
                # The fork alone holds it, so that the line ends with the fork.
                of_fork.close()
            ready = wait(list(going))
            for line in [line for line in going if line in ready]:
                number, process = going[line]
                said = _said(line)
                if isinstance(said, _Asked):
                    _tell(line, answer(said.question))
                elif isinstance(said, _Told):
                    found[number] = said.found
                else:
                    process.join()
                    line.close()
                    del going[line]
    finally:
        for line, (_, process) in going.items():
            if process.is_alive():
                process.kill()
                process.join()
            line.close()
    return found


def _said(line: Connection) -> _Asked | _Told | None:
    """What a fork said; None where it has ended."""
    try:
        said: _Asked | _Told = line.recv()
    except (EOFError, OSError):
        return None
    return said


def _tell(line: Connection, answer: object) -> None:
    # A fork that was killed meanwhile is found to have ended.
    with suppress(OSError):
        line.send(answer)


def _quietly(tie: Callable[[], None], task: Task[Any, Any, Any], line: Connection) -> None:
    """A task in its fork. An interruption from the terminal reaches the fork as well."""
    tie()
    with suppress(DynoError, OSError, EOFError, KeyboardInterrupt):
        line.send(_Told(task(partial(_ask, line))))


def _ask(line: Connection, question: object) -> Any:
    line.send(_Asked(question))
    return line.recv()
