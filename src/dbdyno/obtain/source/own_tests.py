"""A source's own tests: those that its recipe names, run on a build while its folder is still there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from itertools import dropwhile
from pathlib import Path

from dbdyno.errors import Blocked, BuildFailed, DiskFull
from dbdyno.host.cache import Tell
from dbdyno.obtain.source.build import OwnTest
from dbdyno.obtain.source.commands import Workplace, is_allowed, run_step, wrapper
from dbdyno.obtain.source.recipe import SourceTest, expanded
from dbdyno.obtain.source.toolchain import first_error

LONGEST_S = 1800
"""A test that hangs has failed."""
NOBODY = "65534"
NAMES_MOST, LINES_MOST, LINE_MOST = 3, 6, 120
"""So many tests that failed are named, and so much is shown of what the first one answered differently."""
LOOPBACK_UP = """
import contextlib, fcntl, os, socket, struct, sys
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41
with contextlib.suppress(OSError), socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A program of Python's that switches the loopback on, where it may, and becomes the command behind it."""


def run_tests(tests: Sequence[SourceTest], workplace: Workplace, tell: Tell) -> tuple[OwnTest, ...]:
    """How each test ended, up to the first that holds the build up."""
    found: list[OwnTest] = []
    for test in tests:
        tell(f"the source's own tests: {test.name}")
        found.append(_run(test, workplace, tell))
        if found[-1].holds_up:
            break
    return tuple(found)


def _run(test: SourceTest, workplace: Workplace, tell: Tell) -> OwnTest:
    if test.carried and not (_path("{source}", workplace) / test.carried).exists():
        return OwnTest(name=test.name, verdict="absent", detail=f"not run: the source has no {test.carried}")
    before = not_root()
    if before is None:
        why = "servers refuse to start as root, and the kernel refuses user namespaces: run as another user"
        return OwnTest(name=test.name, verdict="unable", detail=why)
    limited = ("timeout", "--kill-after=10", str(LONGEST_S), *test.command)
    try:
        run_step(test.but(command=(*_loopback(), *before, *limited)), workplace, tell)
    except (Blocked, DiskFull) as failure:
        return OwnTest(name=test.name, verdict="unable", detail=f"{failure.message}: {failure.hint}")
    except BuildFailed as failure:
        if unknown := _unknown(test, failure):
            return OwnTest(name=test.name, verdict="unable", detail=unknown)
        return OwnTest(name=test.name, verdict="failed", detail=_cause(test, workplace, failure))
    return OwnTest(name=test.name, verdict="passed")


def _unknown(test: SourceTest, failure: BuildFailed) -> str:
    """That the recipe names a test which this source has not; empty where nothing says so."""
    found = re.search(test.unknown, failure.log, re.MULTILINE) if test.unknown else None
    if found is None:
        return ""
    remedy = "let [[tests]] of their own, with `carried`, name those that not every version has"
    return f"the source has no test {found[1]}: {remedy}"


def _cause(test: SourceTest, workplace: Workplace, failure: BuildFailed) -> str:
    """Which tests failed, and how the first one's answer differs; the first error where nothing tells."""
    said = failure.log
    failing = list(re.finditer(test.failing, said, re.MULTILINE)) if test.failing else []
    if not failing:
        return failure.message
    # What was printed before is of tests that passed.
    since = said[failing[0].end() :]
    names = list(dict.fromkeys(found[1].strip() for found in failing))
    more = f" and {len(names) - NAMES_MOST} more" if len(names) > NAMES_MOST else ""
    written = _path(test.differences, workplace)
    answered = written.read_text(errors="replace") if test.differences and written.is_file() else since
    differs = " | ".join(first_difference(answered)) or first_error(since)
    return f"{', '.join(names[:NAMES_MOST])}{more}: {differs}"


def first_difference(text: str) -> list[str]:
    """The first lines that were expected (`-`) or came in their place (`+`), of a unified difference in a
    text; none where it holds no such difference."""
    hunk = dropwhile(lambda line: not line.startswith("@@"), text.splitlines())
    changed: list[str] = []
    for line in list(hunk)[1:]:
        if not line.startswith((" ", "-", "+", "\\")):
            break
        if line.startswith(("-", "+")):
            changed.append(line if len(line) <= LINE_MOST else f"{line[: LINE_MOST - 1]}…")
    return changed[:LINES_MOST]


def _path(place: str, workplace: Workplace) -> Path:
    return workplace.outside(Path("".join(expanded([place], workplace.places))))


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
