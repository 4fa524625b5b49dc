"""Counting what a process executes, under Valgrind's callgrind: a count that no other load can disturb.

A process that starts under `wrapper` runs uncounted, slower than by itself; while it is counted it is slower
still. What Valgrind does not see is not counted: the kernel, waiting, and what the CPU makes of instructions.

The form is that of Valgrind's Callgrind Format Specification, version 1.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dbdyno.errors import Blocked, DynoError
from dbdyno.host.process import die_with_parent, family

Counts = tuple[int, ...]
"""One number for each event, in the order of the dump's `events`."""


class CalledFunction(NamedTuple):
    """A function, the source file that it begins in, and the object (program or library) that holds it.

    A file that is not known is `???`. A function without a symbol has its address for a name.
    """

    name: str
    file: str
    object: str


@dataclass
class CallgrindDump:
    """One dump of one process. `own` are the counts of a function's own code, `calls` those of each pair of
    caller and callee with all that the callee calls; `totals` are those of the whole dump."""

    events: tuple[str, ...] = ()
    own: dict[CalledFunction, Counts] = field(default_factory=dict)
    calls: dict[tuple[CalledFunction, CalledFunction], Counts] = field(default_factory=dict)
    totals: Counts = ()


def plus(one: Counts, other: Counts) -> Counts:
    """Event by event; a missing count is zero."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    return tuple(a + b for a, b in zip(longer, (*shorter, *[0] * len(longer)), strict=False))


_ASSIGNMENT = re.compile(r"(?P<key>[a-z]+)=\s*(?P<value>.*)")
_HEADER = re.compile(r"(?P<key>[A-Za-z]+):\s*(?P<value>.*)")
_COMPRESSED = re.compile(r"\((?P<number>\d+)\)(?:\s+(?P<name>.*))?")
_POSITION = re.compile(r"[+-]?(0x[0-9a-fA-F]+|\d+)|\*")
_KIND = {"ob": "ob", "cob": "ob", "fn": "fn", "cfn": "fn"}
"""Names are numbered by kind; all that is not here is a file."""


def read_dump(lines: Iterable[str]) -> CallgrindDump:
    """The dump in these lines. Raises DynoError at a line that the format does not allow."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        try:
            reader.take(line.strip())
        except (ValueError, KeyError) as error:
            raise DynoError(f"line {number} of callgrind's dump cannot be read: {error}") from None
    return reader.dump


class _Reader:
    """Where a dump is being read: the names met so far, the function, and the call that costs are due for."""

    def __init__(self) -> None:
        self.dump = CallgrindDump()
        self._names: dict[tuple[str, str], str] = {}
        self._positions = 1
        self._at = {"ob": "", "fl": "", "fi": "", "fn": "", "cob": "", "cfi": "", "cfn": ""}
        self._function: CalledFunction | None = None
        self._callee: CalledFunction | None = None

    def take(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        if line[0] in "+-*0123456789":
            self._count(line)
        elif found := _ASSIGNMENT.match(line):
            self._assign(found["key"], found["value"])
        elif found := _HEADER.match(line):
            self._head(found["key"], found["value"])
        else:
            raise ValueError(line)

    def _head(self, key: str, value: str) -> None:
        if key == "events":
            self.dump.events = tuple(value.split())
        elif key == "positions":
            self._positions = len(value.split())
        elif key == "totals":
            self.dump.totals = tuple(map(int, value.split()))

    def _assign(self, key: str, value: str) -> None:
        at = self._at
        if key == "calls":
            # Where the callee's object or file is not named, it is the one that the caller is in just now.
            self._callee = CalledFunction(at["cfn"], at["cfi"] or at["fi"], at["cob"] or at["ob"])
            at["cob"] = at["cfi"] = ""
            return
        key = {"fe": "fi", "cfl": "cfi"}.get(key, key)
        if key not in at:
            return
        at[key] = self._named(_KIND.get(key, "fl"), value)
        if key == "fl":
            at["fi"] = at["fl"]
        elif key == "fn":
            self._function = CalledFunction(at["fn"], at["fl"], at["ob"])

    def _named(self, kind: str, value: str) -> str:
        found = _COMPRESSED.fullmatch(value)
        if found is None:
            return value
        if found["name"] is not None:
            self._names[kind, found["number"]] = found["name"]
        return self._names[kind, found["number"]]

    def _count(self, line: str) -> None:
        words = line.split()
        if not all(map(_POSITION.fullmatch, words[: self._positions])) or self._function is None:
            raise ValueError(line)
        counts = tuple(map(int, words[self._positions :]))
        if self._callee is None:
            self.dump.own[self._function] = plus(self.dump.own.get(self._function, ()), counts)
        else:
            pair = self._function, self._callee
            self.dump.calls[pair] = plus(self.dump.calls.get(pair, ()), counts)
            self._callee = None


Share = dict[CalledFunction, Counts]
"""Counts by function; no count is in two of them."""


def part_of(dump: CallgrindDump, functions: set[CalledFunction]) -> Share:
    """The counts of these functions' own code, and of what others do for them.

    What they call elsewhere (the C library's) counts under the name of what they call, with all that this
    calls in turn.
    """
    share = {function: counts for function, counts in dump.own.items() if function in functions}
    for (caller, callee), counts in dump.calls.items():
        if caller in functions and callee not in functions:
            share[callee] = plus(share.get(callee, ()), counts)
    return share


def wholes(dump: CallgrindDump) -> Iterator[tuple[CalledFunction, Counts]]:
    """Each function's counts with all that it calls. Those of a recursion count each time it is entered, so
    none is let exceed the dump's total."""
    found = dict(dump.own)
    for (caller, callee), counts in dump.calls.items():
        if caller != callee:
            found[caller] = plus(found.get(caller, ()), counts)
    for function, counts in found.items():
        yield function, tuple(min(one, most) for one, most in zip(counts, dump.totals, strict=False))


FACTOR = "valgrind"
"""What is blocked where Valgrind is missing."""
PATIENCE = 20.0
"""How many times longer than usual a process may take under Valgrind until it answers."""
CONTROL_S, END_S, POLL_S = 120.0, 60.0, 0.05


class Callgrind:
    """Valgrind's callgrind for one process and those that it forks; `folder` is for what it writes.

    `cache_sim` and `branch_sim` have it simulate the CPU's caches and its branch prediction as well. Raises
    Blocked where Valgrind is missing.
    """

    def __init__(self, folder: Path, *, cache_sim: bool = False, branch_sim: bool = False) -> None:
        self._valgrind, self._control = require_valgrind()
        self.folder = folder
        self._simulated = (f"--cache-sim={_yes(cache_sim)}", f"--branch-sim={_yes(branch_sim)}")

    @property
    def wrapper(self) -> tuple[str, ...]:
        """What to put before a command. It becomes the command's process by exec."""
        return (
            self._valgrind,
            "--tool=callgrind",
            # Options from the user's own files would change what is counted.
            "--command-line-only=yes",
            "--quiet",
            "--instr-atstart=no",
            "--separate-recs=1",
            f"--callgrind-out-file={self.folder}/counted.%p",
            f"--vgdb-prefix={self.folder}/vgdb",
            *self._simulated,
        )

    @contextmanager
    def counting(self, process_id: int) -> Iterator[None]:
        """Counts what the process does within, and what those do that it forks within, until they end."""
        for path in self._written():
            path.unlink()
        others = set(family(process_id))
        self._tell(process_id, "instrumentation", "on")
        yield
        self._tell(process_id, "instrumentation", "off")
        self._tell(process_id, "dump")
        # A server's process of one session writes its counts by itself when it ends.
        for alive in _waited_for(process_id, others):
            self._tell(alive, "dump")

    def dumps(self) -> list[CallgrindDump]:
        """What was counted, one dump for each process. Raises DynoError when there is none."""
        found = []
        for path in sorted(self._written()):
            with path.open(encoding="utf-8", errors="replace") as lines:
                found.append(read_dump(lines))
        if not any(dump.own for dump in found):
            raise DynoError("callgrind counted nothing", "let more transactions be counted")
        return found

    def _written(self) -> list[Path]:
        """The dumps. Valgrind makes an empty file at its start, to see that it can."""
        return [path for path in self.folder.glob("counted.*") if path.stat().st_size > 0]

    def _tell(self, process_id: int, *command: str) -> None:
        call = [self._control, f"--pid={process_id}", f"--vgdb-prefix={self.folder}/vgdb", *command]
        try:
            done = subprocess.run(
                call, capture_output=True, text=True, timeout=CONTROL_S, preexec_fn=die_with_parent()
            )
        except subprocess.TimeoutExpired:
            raise DynoError(
                f"process {process_id} did not answer Valgrind's `{' '.join(command)}` in {CONTROL_S:g} s"
            ) from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise DynoError(
                f"Valgrind refused `{' '.join(command)}`: {said[-1] if said else 'it said nothing'}"
            )


def _waited_for(process_id: int, others: set[int]) -> set[int]:
    """Waits for those that were forked since; gives those that still live after `END_S`."""
    deadline = time.monotonic() + END_S
    while (alive := set(family(process_id)) - others) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return alive


def require_valgrind() -> tuple[str, str]:
    """The program that counts, and the one that switches counting on and off. Raises Blocked where one of
    them is missing."""
    return _program("valgrind"), _program("vgdb")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Blocked(FACTOR, f"{name} is not on this machine", "install it: apt install valgrind")
    return found


def _yes(wanted: bool) -> str:
    return "yes" if wanted else "no"
