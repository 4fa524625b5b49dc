"""Single trials with real engines, up to the proof, and what of the host they could have changed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.frozen import Level
from dbdyno.host import kernel_values, paths
from dbdyno.host.cache import held
from dbdyno.host.cgroups import PREFIX
from dbdyno.host.journal import Journal, open_journal
from dbdyno.host.kernel_files import UnreadableFile
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.setup import Running
from dbdyno.records.record import Evidence
from dbdyno.study import Factor, Study, Workload
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial.bench import Bench
from dbdyno.trial.prepare import prepare
from dbdyno.trial.verify import exercised, verify
from tests.fakes import make_run
from tests.needs import IS_ROOT

TPCB: dict[str, Level] = {"scale": 1, "simple_update": False, "select_only": False}
DURATION_S = 0.5


def study_of(engine: str, levels: Mapping[str, Level], blocks: int = 1) -> Study:
    """A study of one setup; its trials are short."""
    return Study(
        title="One setup",
        engine=Reference(engine, "11.8" if engine == "mariadb" else ""),
        blocks=blocks,
        workload=Workload(name="tpcb", warmup_s=0.0, duration_s=DURATION_S, options=TPCB),
        factors=tuple(Factor(name=name, levels=(level,)) for name, level in levels.items()),
        digest="e" * 64,
    )


def bench_of(study: Study, journal: Journal, allowed: Allowed = NOTHING_ALLOWED) -> Bench:
    engine = registry.engine(study.engine.engine)
    return Bench(
        study=study,
        run=make_run(study, f"t{os.urandom(4).hex()}"),
        engine=engine,
        installation=engine.obtaining.locate(study.engine),
        layers=LAYERS,
        journal=journal,
        open_load=LoadProcess,
        cores=2,
        allowed=allowed,
    )


@dataclass
class Tried:
    """A setup that runs, how its data came back, and the evidence by factor."""

    running: Running
    reset: Mapping[str, Level]
    evidence: dict[str, Evidence]

    def value(self, factor: str) -> str:
        found = self.evidence[factor]
        assert found.in_effect, found.reason
        assert found.effective is not None
        return found.effective.value

    def exercised(self, factor: str) -> str:
        """What the load shows of a knob: puts a short one on the server."""
        running = self.running
        tally = running.load.run(running.setup.job)
        assert tally.operations > 0
        [shown] = exercised([self.evidence[factor]], running, LAYERS)
        return shown.exercised.value if shown.exercised else ""


@contextmanager
def tried(engine: str, allowed: Allowed = NOTHING_ALLOWED, /, **levels: Level) -> Iterator[Tried]:
    """One trial as far as the proof; factors are written with two underscores (`cpu__quota="50%"`)."""
    named = {name.replace("__", "."): level for name, level in levels.items()}
    study = study_of(engine, named)
    variant = Variant(name="baseline", levels=named)
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    with open_journal() as journal:
        bench = bench_of(study, journal, allowed)
        with journal.scope(), ExitStack() as undo:
            running, reset = prepare(trial, bench, undo)
            evidence = verify(running, bench.levels_by_layer(trial), bench.layers)
            yield Tried(running, reset, {one.factor: one for one in evidence})


@contextmanager
def alone_on_host() -> Iterator[None]:
    """Holds off other tests that change the host: each would see what the other does."""
    with held(Path(tempfile.gettempdir()) / f"dyno-tests-{os.getuid()}.lock"):
        use_loop_devices()
        yield


@cache
def use_loop_devices() -> None:
    """Attaches each free loop device once, because the kernel sets its read-ahead at the first use."""
    if not IS_ROOT:
        return
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(1 << 20)
        for device in Path("/dev").glob("loop[0-9]*"):
            attached = subprocess.run(["losetup", device, file.name], capture_output=True, check=False)
            if attached.returncode == 0:
                subprocess.run(["losetup", "--detach", device], check=True)


def host_state() -> dict[str, str]:
    """All that a trial could have changed on the host, by name; what others attach is left out."""
    state: dict[str, str] = {}
    for path in _values():
        # Some devices have no such queue, and others may come and go.
        with suppress(UnreadableFile):
            # In force, and not what else is offered: a module that somebody loads adds to that.
            state[str(path)] = kernel_values.read(path).strip()
    state["mounts"] = "\n".join(sorted(_own_lines(Path("/proc/1/mountinfo"))))
    state["loop devices"] = "\n".join(sorted(_own_loop_devices()))
    state["processes"] = "\n".join(sorted(_own_processes()))
    state["cgroups"] = "\n".join(sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{PREFIX}t*"))))
    state["files"] = "\n".join(sorted(_own_files()))
    return state


def _values() -> Iterator[Path]:
    yield Path("/sys/kernel/mm/transparent_hugepage/enabled")
    yield from Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")
    others = {path.parent.parent for path, held in _loop_devices() if not _is_own(held)}
    for device in set(Path("/sys/block").iterdir()) - others:
        yield device / "queue" / "scheduler"
        yield device / "queue" / "read_ahead_kb"


def _own_lines(path: Path) -> Iterator[str]:
    """Lines that name this test's folders."""
    yield from (line for line in path.read_text().splitlines() if str(paths.cache()) in line)


def _own_loop_devices() -> Iterator[str]:
    yield from (f"{backing.parts[3]} {held}" for backing, held in _loop_devices() if _is_own(held))


def _loop_devices() -> Iterator[tuple[Path, str]]:
    """What tells an attached device's file, and what it tells."""
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            yield backing, backing.read_text().strip()
        except OSError:
            continue


def _is_own(held: str) -> bool:
    return str(paths.cache().resolve()) in held or "/ram/volume.img" in held


def _own_processes() -> Iterator[str]:
    mine = str(paths.runtime())
    for process in psutil.process_iter(["cmdline", "ppid"]):
        words = process.info["cmdline"] or []
        if any(mine in word for word in words) and process.pid != os.getpid():
            yield " ".join(words)


def _own_files() -> Iterator[str]:
    for folder in (paths.cache() / "trials", paths.runtime(), paths.host() / "journal"):
        if folder.is_dir():
            yield from map(str, folder.iterdir())
    yield from (str(path) for path in (paths.cache() / "pristine").glob("**/*.making*"))
