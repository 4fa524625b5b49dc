"""How a process is started: what layers add to it, what the start carries out, and the host as a server sees
it, read-only but for its own folders.

A server gets a mount namespace of its own, in which mount_setattr(2) takes the right to write from every
mount (Linux 5.12). As root that takes nothing more; another user needs a user namespace beside it. What Dyno
mounts and unmounts later reaches the server's namespace, which so keeps no volume busy.

Memory that the server's processes share is their own, too: segments of System V in an IPC namespace, files in
a /dev/shm that nobody else sees. Both end with the last of these processes, also where that is killed.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from dbdyno.host.namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_REC,
    MS_SLAVE,
    map_user,
    mount,
    set_attributes,
    unshare,
)
from dbdyno.host.process import refusal
from dbdyno.host.volumes.mounts import mounted_at, mounts


@dataclass
class Launch:
    """How to start the server's process. Layers add to it before the start; the engine only carries it out.

    `wrapper` stands before the command (`setpriv`, `numactl`, `unshare`) and must become it by exec, so that
    signals and readings reach the server; `cgroups` are directories the process is put into before it runs;
    `affinity` the CPUs it may use (empty: all); `patience` is how many times longer than usual it may take
    until it answers, and until it has ended. A load process ends by exit() where `exit_handlers` of an
    embedded engine must run, else without them. Of the host the process may write to its own folders and to
    what is `writable` alone, where the kernel permits that.
    """

    environment: dict[str, str] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()
    affinity: tuple[int, ...] = ()
    cgroups: tuple[Path, ...] = ()
    before_exec: tuple[Callable[[], None], ...] = ()
    patience: float = 1.0
    exit_handlers: bool = False
    writable: tuple[Path, ...] = ()

    def steps(self, *own: Path) -> tuple[Callable[[], None], ...]:
        """What the process does before the command, whose own folders these are."""
        return (*read_only_host((*own, *self.writable)), *self.before_exec)

    def confined_to(self, *own: Path) -> Launch:
        """The same for a process that may write to these folders; unchanged where there are none."""
        return replace(self, before_exec=self.steps(*own)) if own else self


SHORT_LIVED = tuple(dict.fromkeys(map(Path, (tempfile.gettempdir(), "/tmp", "/var/tmp"))))
SHARED_MEMORY = Path("/dev/shm")
"""Where every server may write beside its own folders."""
KERNEL_FILES, KERNEL_VALUES = Path("/proc"), Path("/proc/sys")
"""A process writes to its own files below /proc. The kernel's values there stay as they are."""


def read_only_host(writable: Iterable[Path]) -> tuple[Callable[[], None], ...]:
    """Steps for `before_exec`, before any that gives up rights. After them the process may write to these
    paths, SHORT_LIVED and SHARED_MEMORY alone. None where this host does not permit that: `why_writable`
    says why."""
    own = dict.fromkeys(_there(path).resolve() for path in (*writable, *SHORT_LIVED, SHARED_MEMORY))
    return () if why_writable() or Path("/") in own else (_entering(list(own)),)


@cache
def why_writable() -> str:
    """Why a server can write wherever its user may; empty where it cannot. It is tried once a process, so
    that all servers of a run are started alike."""
    refused = refusal(_entering([SHARED_MEMORY]))
    if not refused:
        return ""
    reasons = {
        errno.EINVAL: "/ is not a mount point here, as in a chroot",
        errno.ENOSYS: "this kernel is older than 5.12",
        errno.ENOSPC: "this machine has reached its limit of namespaces",
    }
    return reasons.get(refused, f"the kernel refuses a mount namespace ({os.strerror(refused)})")


def servers_text() -> str:
    """How the servers of a run see the host."""
    refused = why_writable()
    if refused:
        return f"nothing keeps servers from writing to the host: {refused}"
    return "servers see the host read-only, but for their own folders"


def _entering(writable: Sequence[Path]) -> Callable[[], None]:
    """The mounts are looked up before the fork."""
    kept = [path for path in writable if "ro" not in mounted_at(path).options]
    below = [
        point
        for point, found in mounts()
        if "ro" not in found.options and any(point != path and point.is_relative_to(path) for path in kept)
    ]
    user, group = os.geteuid(), os.getegid()
    # Data may lie in memory as well.
    has_own_memory = not any(
        path != SHARED_MEMORY and path.is_relative_to(SHARED_MEMORY) for path in writable
    )

    def enter() -> None:
        folder = Path.cwd()
        unshare(CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER)
        if user != 0:
            map_user(user, user, group, group)
        mount(b"none", b"/", None, MS_REC | MS_SLAVE)
        for path in (*kept, KERNEL_VALUES):
            mount(os.fsencode(path), os.fsencode(path), None, MS_BIND | MS_REC)
        set_attributes(b"/", MOUNT_ATTR_RDONLY, 0, recursive=True)
        for path in (*kept, KERNEL_FILES):
            set_attributes(os.fsencode(path), 0, MOUNT_ATTR_RDONLY)
        for point in below:
            # A mount that another covers has no path, and nothing can be written to it.
            with suppress(OSError):
                set_attributes(os.fsencode(point), 0, MOUNT_ATTR_RDONLY)
        if has_own_memory:
            # Some containers permit mounts, and no such namespace.
            with suppress(OSError):
                unshare(CLONE_NEWIPC)
            with suppress(OSError):
                mount(b"none", os.fsencode(SHARED_MEMORY), b"tmpfs", MS_NOSUID | MS_NODEV)
        # The folder that the process began in lies on a mount that is covered now.
        os.chdir(folder)

    return enter


def _there(path: Path) -> Path:
    """The path, or the nearest folder above it where it is still to be made."""
    return next(place for place in (path, *path.parents) if place.exists())
