"""A source's own tests: those that its recipe names, run on a build while its folder is still there."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache

from dbdyno.errors import Blocked, BuildFailed, DiskFull
from dbdyno.host.once import Tell
from dbdyno.obtain.source.build import OwnTest
from dbdyno.obtain.source.commands import Workplace, is_allowed, run_step, wrapper
from dbdyno.obtain.source.recipe import Step

LONGEST_S = 1800
"""A test that hangs has failed."""
NOBODY = "65534"
LOOPBACK_UP = """
import contextlib, fcntl, os, socket, struct, sys
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41
with contextlib.suppress(OSError), socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A program of Python's that switches the loopback on, where it may, and becomes the command behind it."""


def run_tests(steps: Sequence[Step], workplace: Workplace, tell: Tell) -> tuple[OwnTest, ...]:
    """How each test ended, up to the first that did not pass."""
    found: list[OwnTest] = []
    for step in steps:
        tell(f"the source's own tests: {step.name}")
        found.append(_run(step, workplace, tell))
        if found[-1].verdict != "passed":
            break
    return tuple(found)


def _run(step: Step, workplace: Workplace, tell: Tell) -> OwnTest:
    before = not_root()
    if before is None:
        why = "servers refuse to start as root, and the kernel refuses user namespaces: run as another user"
        return OwnTest(name=step.name, verdict="unable", detail=why)
    limited = ("timeout", "--kill-after=10", str(LONGEST_S), *step.command)
    try:
        run_step(step.model_copy(update={"command": (*_loopback(), *before, *limited)}), workplace, tell)
    except (Blocked, DiskFull) as failure:
        return OwnTest(name=step.name, verdict="unable", detail=f"{failure.message}: {failure.hint}")
    except BuildFailed as failure:
        return OwnTest(name=step.name, verdict="failed", detail=failure.message)
    return OwnTest(name=step.name, verdict="passed")


def _loopback() -> tuple[str, ...]:
    """What a command follows so that a server can listen on the loopback, which is down in a new namespace of
    the network. Whoever becomes another user may not switch it on any more."""
    return () if wrapper() is None else (sys.executable, "-c", LOOPBACK_UP)


@cache
def not_root() -> tuple[str, ...] | None:
    """What a command follows so that it is not root, because servers refuse to start as root; None where the
    kernel refuses that. An ordinary user too is root in the namespace that takes the network away. Its files
    stay those of who runs Dyno."""
    isolated = wrapper()
    if os.geteuid() != 0 and isolated is None:
        return ()
    found = ("unshare", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    return found if is_allowed((*(isolated or ()), *found)) else None
