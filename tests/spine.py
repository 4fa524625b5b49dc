"""A run carried out over a bench that needs no server."""

from __future__ import annotations

from typing import Any

from dbdyno.host import paths
from dbdyno.host.journal import open_journal
from dbdyno.kinds.registry import ask_for
from dbdyno.plan import blocks as reference
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from dbdyno.run import RunSide, run_study, run_trial
from dbdyno.study import Arrangement, Study
from dbdyno.study.trials import Phase, phases_of
from tests.fakes import FakeEngine, Stages, carried_out, make_bench, make_run, make_study


def carry_out(
    study: Study, progress: Stages | None = None, engine: FakeEngine | None = None, **load: Any
) -> list[Record]:
    """A run of the study in the store at `store_path()`, begun or gone on with."""
    with Store(f"sqlite:///{paths.data() / 'dyno.sqlite'}") as store, open_journal() as journal:
        run = make_run(study)
        if not store.runs():
            store.add_run(run)
        bench = make_bench(study, run, journal, engine, **load)
        return carried_out(bench, store, progress)


def leftovers() -> list[str]:
    """Files of trials, sockets and journals that a finished Dyno must not leave."""
    folders = (paths.cache() / "trials", paths.runtime(), paths.host() / "journal")
    found = [path for folder in folders if folder.exists() for path in folder.iterdir()]
    making = list((paths.cache() / "pristine").glob("*.making"))
    return [str(path) for path in found + making]


def with_images(study: Study, images: int | None) -> Study:
    return study.but(images=images)


PHASES = (Phase(name="calm", duration_s=0.5), Phase(name="storm", duration_s=1.5))


def two_phases(
    progress: Stages | None = None, phases: tuple[Phase, ...] = PHASES, **load: Any
) -> tuple[Record, list[Record]]:
    """A trial of two phases or others: its record, and those that were kept while it went on."""
    study = make_study(1, 2)
    first = make_plan(study, Order(seed=1)).trials[0].but(phases=phases)
    kept: list[Record] = []
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal, **load)
        return run_trial(first, bench, kept.append, progress or Stages()), kept


def beside(*levels: int, blocks: int = 2, **changes: Any) -> Study:
    """A study whose trials have two slices and run side by side."""
    study = make_study(*levels, blocks=blocks, arrangement=Arrangement.SIDE_BY_SIDE, slice_s=0.5, **changes)
    assert phases_of(study)[0].slices == 2
    return study


def in_turn(study: Study, progress: Stages, engine: FakeEngine) -> tuple[list[Record], list[Record]]:
    """A run, and a second one that measures its baseline again."""
    runs = make_run(study), make_run(study, "again")
    with Store(store_url()) as store, open_journal() as journal:
        for run in runs:
            store.add_run(run)
        own, again = (make_bench(study, run, journal, engine) for run in runs)
        side, other = (
            RunSide(ask_for(own.run), own, progress),
            RunSide(reference.ask_of_reference, again, progress),
        )
        return run_study(side, store, other), store.records("again")
