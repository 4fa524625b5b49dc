"""A trial that changes all of the host that Dyno can change, killed (-9) at every fault point in turn.

`python -m tests.host.killed_host [STRIDE [FIRST]]` takes every point of that stride, from the first on. It
prints a line of JSON per point after which the host was not as before, and at the end how many points there
were. A fault point lies before and after every line of the journal, and at the start of every stage. Only the
server is no database: it maps the huge pages that were reserved.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dbdyno.engines.engine import HugePageSettings
from dbdyno.frozen import Level
from dbdyno.host import cgroups, kernel_values, paths, process
from dbdyno.host.fingerprint import THP_MODE
from dbdyno.host.journal import Journal, open_journal, replay_abandoned
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.conftest import wait_for_no_disk
from tests.fakes import FakeEngine, FakeServer, Stages, carried_out, make_bench, make_run, make_study
from tests.trials import alone_on_host, host_state

PAGES_BYTES = 8 << 20
SERVER = f"""
import mmap, time
area = mmap.mmap(-1, {PAGES_BYTES}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
area[0] = 1
small = mmap.mmap(-1, {PAGES_BYTES}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
small[0] = 1
print("ready", flush=True)
time.sleep(600)
"""
BACK_S = 15.0
"""How long the kernel may take to end what a killed process held."""


@dataclass
class HostEngine(FakeEngine):
    """A server whose process does what the levels ask of it."""

    def huge_pages(self, settings: Mapping[str, Level], page_bytes: int) -> HugePageSettings:
        return HugePageSettings({}, PAGES_BYTES, PAGES_BYTES)

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> FakeServer:
        if not settings:
            # The pristine data are made without the levels, and there are no huge pages for that.
            return super().start(installation, data, runtime, settings, launch)
        log = runtime / "log"
        with log.open("wb") as output:
            child = process.start(
                [sys.executable, "-c", SERVER],
                environment={},
                output=output,
                affinity=launch.affinity,
                cgroups=launch.cgroups,
                before_exec=launch.before_exec,
            )
        while "ready" not in log.read_text():
            time.sleep(0.005)
        self.running_settings = dict(settings)
        return FakeServer(child)


def levels() -> dict[str, Level]:
    """Every kind of change: two host-wide values, a group, a volume with a file system, its queue."""
    # The host's own mode allows no less than this one, so that no prctl can do and the host must change.
    mode = "always" if kernel_values.read(THP_MODE) != "always" else "madvise"
    chosen: dict[str, Level] = {
        "config.speed": 1,
        "memory.huge_pages": "2M",
        "storage.filesystem": "ext4",
        "storage.mount": "noatime",
        "storage.read_ahead": int(_in_force_nowhere("read_ahead_kb", ("64", "96", "192", "320", "448"))),
    }
    with suppress(StopIteration):
        offered = kernel_values.choices(next(Path("/sys/block").glob("loop*/queue/scheduler")))
        chosen["storage.scheduler"] = _in_force_nowhere("scheduler", offered)
    if mode == "always":
        chosen["memory.thp"] = mode
    if cgroups.hierarchy("cpu"):
        chosen["cpu.quota"] = "90%"
    return chosen


def _in_force_nowhere(name: str, offered: Iterable[str]) -> str:
    """The first value that no loop device's queue has. One that had it would make for a run with fewer
    points, and which device a run is given hangs on who else has some. Raises StopIteration."""
    # `none` is what a device has that the kernel makes for the run.
    in_force = {"none", *map(kernel_values.read, Path("/sys/block").glob(f"loop*/queue/{name}"))}
    return next(value for value in offered if value not in in_force)


def one_run(point: Callable[[str], None]) -> None:
    """The whole run, with a call of `point` at every fault point."""
    append = Journal._append

    def watched(journal: Journal, line: Mapping[str, Any]) -> None:
        what = f"undone {line['undone']}" if "undone" in line else line.get("kind", "header")
        point(f"before {what}")
        append(journal, line)
        point(f"after {what}")

    setattr(Journal, "_append", watched)  # noqa: B010  a method of the real journal
    study = make_study(1, blocks=1, settings={k: v for k, v in levels().items() if k != "config.speed"})
    run, engine = make_run(study), HostEngine()
    with Store(store_url()) as store, open_journal() as journal:
        store.add_run(run)
        bench = make_bench(study, run, journal, engine)
        stages = Stages(lambda trial, stage: point(f"stage {stage}"))
        [record] = carried_out(bench, store, stages)
        if record.outcome is not Outcome.MEASURED:
            raise SystemExit(f"the run is no measure of anything: {record.cause}")


def in_child(point: Callable[[str], None]) -> int:
    """The run in a child, whose wait status is returned. Each begins without pristine data."""
    shutil.rmtree(paths.cache() / "pristine", ignore_errors=True)
    (paths.data() / "dyno.sqlite").unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        try:
            one_run(point)
            os._exit(0)
        except BaseException as failure:
            print(repr(failure), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def killed_at(number: int) -> Callable[[str], None]:
    seen = 0

    def point(_name: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return point


def what_is_left(before: Mapping[str, str]) -> dict[str, str]:
    """What differs from before once the next start has restored the host and the kernel has caught up."""
    replay_abandoned()
    deadline = time.monotonic() + BACK_S
    while True:
        now = host_state()
        # A value of a device that is somebody else's by now is not there.
        left = {name: now[name] for name in before if name in now and now[name] != before[name]}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def main(stride: int = 1, first: int = 1) -> int:
    names = paths.data() / "points"
    names.unlink(missing_ok=True)

    def note(name: str) -> None:
        with names.open("a") as file:
            print(name, file=file)

    if in_child(note) != 0:
        return 1
    points = names.read_text().splitlines()
    bad, chosen = 0, range(first, len(points) + 1, stride)
    for number in chosen:
        # Anew for each, because a loop device that is free is anybody's: others leave it as they please.
        before = host_state()
        status = in_child(killed_at(number))
        left = what_is_left(before)
        if left or not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            bad += 1
            print(json.dumps({"point": points[number - 1], "status": status, "left": left}), flush=True)
    print(json.dumps({"points": len(points), "first": first, "tried": len(chosen), "bad": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    # A kill loses nothing that the kernel has.
    wait_for_no_disk(paths.cache(), pytest.MonkeyPatch())
    with alone_on_host():
        sys.exit(main(*map(int, sys.argv[1:])))
