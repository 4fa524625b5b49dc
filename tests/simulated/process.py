"""One process of a simulated run, from the replay of what another left to its own end."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dbdyno.run
from dbdyno import interrupts
from dbdyno.errors import DynoError
from dbdyno.host import cache, journal, paths
from dbdyno.host.clone import Cloned, clone_tree
from dbdyno.host.journal import Journal, open_journal, replay_abandoned, undoes
from dbdyno.kinds.registry import ask_for
from dbdyno.layers.registry import LAYERS
from dbdyno.plan import blocks
from dbdyno.plan.search.sampler import can_drop, hopeless
from dbdyno.records.database import Unavailable
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.run import RunSide, run_study
from dbdyno.study import Study
from dbdyno.study.trials import Trial
from dbdyno.trial import pristine
from dbdyno.trial.acts import engine as acts_engine
from dbdyno.trial.bench import Bench
from tests.fakes import INSTALLATION
from tests.simulated.bench import HostLayer, SimulatedEngine, SimulatedObserver
from tests.simulated.studies import Case
from tests.simulated.world import FULL, Endless, World

REFERENCE = "again"
AT_FIRST = "as before"


@undoes("simulated")
def _restore(entry: Mapping[str, Any]) -> None:
    Path(entry["path"]).write_text(entry["value"])


@dataclass
class Ended:
    """How a process ended, and what it did: the trials that were asked for after so many records, and those
    records in the order in which they were kept."""

    world: World
    how: str = ""
    asked: list[tuple[int, Sequence[Trial]]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


class SimulatedProgress:
    """Takes a step at each stage, and notes in a file which trials it was told of."""

    def __init__(self, world: World, run: str) -> None:
        self._world, self._run = world, run

    def trial_began(self, trial: Trial) -> None:
        self._world.begin(f"{self._run}-{trial.index}")

    def stage_began(self, trial: Trial, stage: str) -> None:
        name = f"{self._run}-{trial.index}"
        self._world.stages[name] = stage
        self._world.at("stage", name)

    def trial_ended(self, record: Record) -> None:
        with (self._world.root / "told").open("a") as file:
            print(record.run, record.trial, file=file)
        self._world.at("told")


class SimulatedStore(Store):
    """A store that takes a step before and after each record, and whose disk may be full."""

    def __init__(self, world: World) -> None:
        super().__init__(store_url())
        self._world = world

    def add_record(self, record: Record) -> None:
        self._world.trial = f"{record.run}-{record.trial}"
        taking, waiting = self._transaction, self._spool.path
        if full := self._world.at("record"):
            self._transaction = partial(_full, self.place)
        if full == FULL:
            # The spool follows no link, so that nothing can be written there.
            self._spool.path = self._world.root / "link"
            self._spool.path.symlink_to("nowhere")
        try:
            super().add_record(record)
        finally:
            self._transaction, self._spool.path = taking, waiting
        self._world.at("recorded")


@contextmanager
def _full(place: str, writes: bool = True) -> Iterator[Any]:
    raise Unavailable(f"the store {place} failed: database or disk is full")
    yield


@contextmanager
def hooked(world: World) -> Iterator[None]:
    """Within, the journal and the clones take steps in this world, and nothing waits for a process."""
    append, undo = Journal._append, journal._undo

    def appended(self: Journal, line: Mapping[str, Any]) -> None:
        name = "undone" if "undone" in line else "note" if "kind" in line else "header"
        # What was undone stands no more when that is noted.
        later = [entry["id"] for entry in self._standing if entry["id"] > line.get("undone", entry["id"])]
        if later:
            world.wrong(f"entry {line['undone']} is undone before {later}")
        if world.at(name) == FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, line)
        world.at(f"{name} written")

    def undone(entry: Mapping[str, Any], note: Callable[..., None]) -> str:
        world.at("undo")
        return undo(entry, note)

    def cloned(source: Path, target: Path) -> Cloned:
        world.at("clone")
        found = clone_tree(source, target)
        world.at("cloned")
        return found

    replaced: list[tuple[Any, str, Any]] = [
        (Journal, "_append", appended),
        (journal, "_undo", undone),
        (pristine, "clone_tree", cloned),
        (dbdyno.run, "Observer", SimulatedObserver),
        (acts_engine, "KILLED_AFTER_S", 0.0),
    ]
    before = [getattr(place, name) for place, name, _ in replaced]
    for place, name, value in replaced:
        setattr(place, name, value)
    try:
        yield
    finally:
        for (place, name, _), value in zip(replaced, before, strict=True):
            setattr(place, name, value)


def one_process(case: Case, world: World) -> Ended:
    """What `dyno run` and `dyno run --resume` do, to the end of their process."""
    ended = Ended(world)
    interrupts.raise_on_signals(lambda: None)
    try:
        with hooked(world):
            try:
                _carry_on(case, world, ended)
                ended.how = "whole"
            except KeyboardInterrupt:
                ended.how = "interrupted"
            except (DynoError, OSError) as failure:
                ended.how = f"{type(failure).__name__}: {failure}"
            except (Exception, Endless) as fault:
                ended.how = f"a traceback: {fault!r}"
                world.wrong(ended.how)
    finally:
        for number in (*interrupts.SIGNALS, interrupts.AGAIN):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = sys.__unraisablehook__
        cache.release()
    return ended


def _carry_on(case: Case, world: World, ended: Ended) -> None:
    replay_abandoned()
    for left in left_behind(world):
        world.wrong(f"after the replay: {left}")
    with SimulatedStore(world) as store, open_journal() as opened:
        run = case.run
        resumed = any(summary.run.run == run.run for summary in store.runs())
        store.add_run(run)
        engine = SimulatedEngine(world=world, embedded=case.embedded)
        bench = _bench(case, world, engine, opened)
        progress = SimulatedProgress(world, run.run)
        side, other = RunSide(_noted(ask_for(run), ended), bench, progress), None
        try:
            if case.kind == "in turn" and not resumed:
                again = run.but(run=REFERENCE)
                store.add_run(again)
                other = RunSide(
                    blocks.ask_of_reference,
                    _bench(case, world, engine, opened, again),
                    SimulatedProgress(world, REFERENCE),
                )
            ended.records = run_study(side, store, other)
        finally:
            _require_end(world, engine)


def _bench(
    case: Case, world: World, engine: SimulatedEngine, opened: Journal, run: Run | None = None
) -> Bench:
    drops = case.kind == "search" and can_drop(case.study)
    more: dict[str, Any] = {"drop": hopeless} if drops else {}
    return Bench(
        study=case.study,
        run=run or case.run,
        engine=engine.engine,
        installation=INSTALLATION,
        layers={**LAYERS, "host": HostLayer(world)},
        journal=opened,
        open_load=engine.open_load,
        cores=2,
        clock=engine.clock,
        **more,
    )


def _noted(ask: Callable[..., Sequence[Trial]], ended: Ended) -> Callable[..., Sequence[Trial]]:
    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        trials = ask(study, run, records)
        ended.asked.append((len(records), trials))
        return trials

    return asked


def _require_end(world: World, engine: SimulatedEngine) -> None:
    """Notes what runs although its trial is over."""
    if up := sum(server.alive() for server in engine.up):
        world.wrong(f"{up} servers are left")
    if going := sum(load.open for load in engine.loads):
        world.wrong(f"{going} load processes are left")


def left_behind(world: World) -> list[str]:
    """Folders, marks, journals and values of the host that a finished Dyno must not leave."""
    host = paths.host_place()
    made = (paths.cache_place() / "trials", paths.runtime_place(), host / "journal", host / paths.MARKS)
    found = [path for folder in made if folder.exists() for path in folder.iterdir()]
    found += (paths.cache_place() / "pristine").glob("*.making")
    value = world.host_value.read_text()
    return [str(path.relative_to(world.root)) for path in found] + ([value] if value != AT_FIRST else [])


def in_child(act_out: Callable[[], object]) -> int:
    """The wait status of a process of its own that acts, and then ends."""
    sys.stdout.flush()
    process_id = os.fork()
    if process_id == 0:
        try:
            act_out()
            os._exit(0)
        except BaseException as fault:
            print(f"a fault of the simulation's own: {fault!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    return os.waitpid(process_id, 0)[1]
