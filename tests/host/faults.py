"""Every kind of change that the journal knows, struck at any system call of note, act and undoing.

`python -m tests.host.faults CASES SEED KIND...` tries so many cases (0: all) of some kinds, and prints a line
of JSON for each after which something of the host had changed that no journal told of, or was not as before
once the next Dyno had started. The last line counts the cases.

A fault is a kill, Ctrl-C, or a full disk (`tests/host/tracer.py`). It strikes a Dyno that acts and undoes
(`act`), or one that replays the journal of a Dyno that was killed (`replay`). With two Dynos another starts
as the fault strikes: it replays, and then makes the same change.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import SubprocessError
from types import FrameType

from dbdyno import interrupts
from dbdyno.errors import DynoError
from dbdyno.host import paths
from dbdyno.host.journal import open_journal, replay_abandoned
from tests.host.changes import CHANGES, Scene, outlast, scene
from tests.host.tracer import Traced, stop_for_tracer, trace

PHASES = ("act", "replay")
TELL_EVERY = 250
HANGS_S = 60
"""A case that takes so long counts as bad."""
BACK_S = 10.0
"""How long the kernel may take to end what a killed process held."""


@dataclass(frozen=True)
class Case:
    """A fault at the call of a number, counted from the beginning of a phase."""

    kind: str
    phase: str
    call: int
    fault: str
    dynos: int


def child(act: Callable[[], object], traced: bool = False) -> int:
    """The number of a process that acts, and then ends."""
    process_id = os.fork()
    if process_id == 0:
        try:
            signal.alarm(0)
            interrupts.raise_on_signals(lambda: None)
            if traced:
                stop_for_tracer()
            act()
        except (DynoError, KeyboardInterrupt, OSError, SubprocessError) as ended:
            if "DYNO_FAULTS_TOLD" in os.environ:
                print(os.getpid(), repr(ended), file=sys.stderr)
        except BaseException as fault:
            print(f"a fault of the test's own: {fault!r}", file=sys.stderr)
        finally:
            os._exit(0)
    return process_id


def acts(here: Scene, kind: str) -> None:
    """A Dyno that makes a change, and undoes it."""
    with open_journal() as journal, journal.scope():
        CHANGES[kind](here, journal)


def starts(here: Scene, kind: str) -> None:
    """A Dyno that starts after another, or beside it, and makes the same change."""
    replay_abandoned()
    acts(here, kind)


def dies(here: Scene, kind: str) -> None:
    """A Dyno that is killed while its changes stand."""
    with open_journal() as journal:
        held = CHANGES[kind](here, journal)
        outlast(here, journal)
        os.kill(os.getpid(), signal.SIGKILL)
        del held


def strike(here: Scene, case: Case) -> Traced:
    """Carries a case out, to the end of all who take part."""
    if case.phase == "replay":
        os.waitpid(child(lambda: dies(here, case.kind)), 0)
    waits, tells = os.pipe()

    def second() -> None:
        os.close(tells)
        if os.read(waits, 1):
            starts(here, case.kind)

    others = [child(second)] if case.dynos == 2 else []
    whole = replay_abandoned if case.phase == "replay" else lambda: acts(here, case.kind)
    traced = trace(child(whole, traced=True), case.call, case.fault, lambda: os.write(tells, b"x"))
    os.close(tells)
    os.close(waits)
    for other in others:
        # The tracer may have seen its end.
        with suppress(ChildProcessError):
            os.waitpid(other, 0)
    return traced


def wrong(here: Scene, before: dict[str, str]) -> dict[str, str]:
    """What is not as it should be after a case, and is put right."""
    found = {}
    journals = list((paths.host_place() / "journal").iterdir())
    if not journals and (left := differing(here, before)):
        found["without a journal"] = str(left)
    try:
        replay_abandoned()
    except DynoError as error:
        found["resists"] = error.message
    if left := differing(here, before):
        found["not as before"] = str(left)
    for folder in (paths.journals(), paths.marks()):
        if rest := [path.name for path in folder.iterdir()]:
            found[f"left in {folder.name}"] = str(rest)
            for path in folder.iterdir():
                path.unlink()
    if found:
        # One that is left must not count in the cases after it.
        for group in here.groups():
            group.rmdir()
    return found


def differing(here: Scene, before: dict[str, str]) -> dict[str, str]:
    """What differs from before when the kernel has caught up."""
    deadline = time.monotonic() + BACK_S
    while (now := here.state()) != before and time.monotonic() < deadline:
        time.sleep(0.002)
    return {what: found for what, found in now.items() if found != before[what]}


def every_case(here: Scene, kinds: list[str]) -> Iterator[Case]:
    """Each fault at each call of each phase, once with one Dyno and once with two."""
    for kind in kinds:
        for phase in PHASES:
            traced = strike(here, Case(kind, phase, -1, "", 1))
            replay_abandoned()
            for call, full in enumerate(traced.full):
                for fault in ("kill", "interrupt", *(["full"] if full else [])):
                    for dynos in (1, 2):
                        yield Case(kind, phase, call, fault, dynos)


@contextmanager
def homes() -> Iterator[Path]:
    """Folders for Dyno in memory where that is to be had, because a disk makes each case wait."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="dyno-f-", dir=memory if memory.is_dir() else None) as name:
        root = Path(name)
        for variable in ("DATA", "CACHE", "STATE", "CONFIG"):
            os.environ[f"XDG_{variable}_HOME"] = str(root / variable.lower())
        os.environ["XDG_RUNTIME_DIR"] = name
        os.environ[paths.HOST_VARIABLE] = str(root / "host")
        yield root


def hangs(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def main(count: int, seed: int, kinds: list[str]) -> int:
    tried, bad, missed = Counter[str](), 0, 0
    signal.signal(signal.SIGALRM, hangs)
    with homes() as root:
        here = scene(root, kinds)
        before = here.state()
        cases = list(every_case(here, kinds))
        random.Random(seed).shuffle(cases)
        chosen = cases[: count or None]
        for number, case in enumerate(chosen):
            if number % TELL_EVERY == TELL_EVERY - 1:
                print(f"{number + 1} of {len(chosen)} cases, {bad} bad", file=sys.stderr, flush=True)
            signal.alarm(HANGS_S)
            struck = strike(here, case).struck
            signal.alarm(0)
            missed += not struck
            if struck:
                tried[f"{case.kind} {case.phase} {case.fault} {case.dynos}"] += 1
            if found := wrong(here, before):
                bad += 1
                print(json.dumps({**vars(case), "found": found}), flush=True)
    print(json.dumps({"all": len(cases), "seed": seed, "missed": missed, "bad": bad, "tried": tried}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
