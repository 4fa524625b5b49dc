"""Starting processes that never outlive Dyno, and that are ended as a whole."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: IO[bytes],
    affinity: Iterable[int] = (),
    cgroups: Iterable[Path] = (),
    user: tuple[int, int] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts `command` in a session of its own; the kernel kills it when the calling *thread* ends, however
    it ends.

    `user` is the (uid, gid) it runs under. Output and errors go to `output`. Raises OSError when it cannot
    be run.
    """
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
        preexec_fn=_settle(os.getpid(), tuple(affinity), tuple(cgroups), user),
    )


def die_with_parent() -> Callable[[], None]:
    """A `preexec_fn` that ties the child to the life of the calling thread."""
    return _settle(os.getpid(), (), (), None)


def _settle(
    parent: int, affinity: tuple[int, ...], cgroups: tuple[Path, ...], user: tuple[int, int] | None
) -> Callable[[], None]:
    """What the child does between fork and exec: system calls only, as other threads may hold locks."""

    def settle() -> None:
        for folder in cgroups:
            with (folder / "cgroup.procs").open("w") as members:
                members.write("0")
        if affinity:
            os.sched_setaffinity(0, affinity)
        if user is not None:
            uid, gid = user
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        # Last, because a change of user clears it (prctl(2)).
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)

    return settle


def family(process_id: int) -> tuple[int, ...]:
    """The process and all that descend from it, parents first; empty when it is gone."""
    try:
        process = psutil.Process(process_id)
        members = [process, *process.children(recursive=True)]
        return tuple(member.pid for member in members if member.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return ()


def kill_family(child: subprocess.Popen[bytes], timeout_s: float = 10.0) -> None:
    """Kills a child of ours with all its descendants and waits until none is left."""
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
    child.wait(timeout_s)
    psutil.wait_procs(members, timeout=timeout_s)
