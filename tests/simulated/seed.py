"""A seed: its study is carried out undisturbed, then under the faults that it draws, and both are judged."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from dbdyno.host import paths
from tests.simulated import judge
from tests.simulated.process import AT_FIRST, Ended, in_child, one_process
from tests.simulated.studies import Case, Ordeal, drawn_case, drawn_fault, drawn_strikes
from tests.simulated.world import MAKING, World

PROCESS_S = 1_000_000.0
"""More than any process of a run takes."""
PASSING = ("note", "undone")
"""Steps of the journal. How many a trial takes depends on what was made before it."""


def wrong_with(seed: int, tried: Counter[str] | None = None) -> list[str]:
    """What is wrong with a seed. Counts in `tried` what befell it."""
    case, draw = drawn_case(seed), random.Random(f"ordeal {seed}")
    found, plain = undisturbed(case, Ordeal())
    fault = drawn_fault(draw, case, plain.world.steps) if draw.random() < 0.6 else None
    whole = plain
    if fault is not None:
        more, whole = undisturbed(case, Ordeal(fault))
        found += more
    lasting = fault is None or not (fault.step.startswith(MAKING) or fault.step in PASSING)
    strikes = drawn_strikes(draw, whole.world.steps) if lasting and draw.random() < 0.8 else ()
    ordeal = Ordeal(fault, strikes)
    if strikes:
        found += disturbed(case, ordeal, whole)
    if tried is not None:
        tried.update([case.kind, *_named(ordeal)])
    told = f"{case.kind}, {case.study.arrangement}, {ordeal}"
    return [told, *found] if found else []


def _named(ordeal: Ordeal) -> Iterator[str]:
    if ordeal.fault is not None:
        yield f"{ordeal.fault.kind} at {ordeal.fault.step}"
    for strikes in ordeal.strikes:
        yield " and ".join(strikes.values())


def undisturbed(case: Case, ordeal: Ordeal) -> tuple[list[str], Ended]:
    """A run of one process, which a fault of a trial may strike."""
    with homes() as root:
        world = World(root, ordeal.fault)
        ended = one_process(case, world)
        found = [*_written(root), *judge.Kept().changed(world), *judge.left(world)]
        found += judge.outcomes(case, ordeal, ended.world.struck)
        found += judge.images(ended)
        found += judge.kept_first(ended)
        found += judge.ratios(case)
        found += judge.bounded(case, ended)
        found += judge.ask_alike(case, ended)
        ended.records = judge.stored()
        return found, ended


def disturbed(case: Case, ordeal: Ordeal, whole: Ended) -> list[str]:
    """The same run, whose processes end early, and which others go on with to its end."""
    found = list[str]()
    with homes() as root:
        kept = judge.Kept()
        for number, strikes in enumerate((*ordeal.strikes, {}), 1):
            # Each process begins later than those before it: by its time a record is the later one.
            world = World(root, ordeal.fault, strikes, now_s=number * PROCESS_S)
            died = "death" in strikes.values()
            if died:
                status = in_child(partial(one_process, case, world))
                died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
                found += [] if died or status == 0 else [f"the process ended with {status}"]
            else:
                ended = one_process(case, world)
                found += judge.left(world)
                interrupts = [number for number, kind in strikes.items() if kind == "interrupt"]
                if interrupts and min(interrupts) <= len(world.steps) and ended.how != "interrupted":
                    found.append(f"Ctrl-C at step {interrupts[0]} ended with: {ended.how}")
            found += kept.changed(world)
        found += _written(root)
        if ended.how != whole.how:
            found.append(f"ended with {ended.how} and not with {whole.how}")
        found += judge.outcomes(case, ordeal, whole.world.struck)
        found += judge.ratios(case)
        found += judge.alike(case, whole, judge.stored())
    return found


def _written(root: Path) -> list[str]:
    """What was found wrong while the run went on."""
    with suppress(FileNotFoundError):
        return (root / "wrong").read_text().splitlines()
    return []


@contextmanager
def homes() -> Iterator[Path]:
    """Folders for Dyno, in memory where that is to be had, because a disk makes each journal entry wait."""
    memory = Path("/dev/shm")
    names = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
    before = {name: os.environ.get(name) for name in (*names, paths.HOST_VARIABLE)}
    with tempfile.TemporaryDirectory(prefix="dyno-s-", dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder)
        (root / "host-value").write_text(AT_FIRST)
        for number, name in enumerate(before):
            (root / str(number)).mkdir(mode=0o700)
            os.environ[name] = str(root / str(number))
        try:
            yield root
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
