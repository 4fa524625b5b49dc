"""Counting what a process executes, under Valgrind's callgrind: a count that no other load can disturb.

A process that starts under `wrapper` runs uncounted, slower than by itself; while it is counted it is slower
still. What Valgrind does not see is not counted: the kernel, waiting, and what the CPU makes of instructions.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbdyno.errors import Blocked, DynoError
from dbdyno.host.callgrind_dump import Dump, read_dump
from dbdyno.host.process import die_with_parent, family

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

    def dumps(self) -> list[Dump]:
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
