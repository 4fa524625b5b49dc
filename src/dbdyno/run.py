"""The spine: one study from its first trial to its last. `run_trial` reads as the architecture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import count
from typing import Protocol

from dbdyno.errors import DynoError, ServerFailed
from dbdyno.host.interrupts import shielded
from dbdyno.layers.setup import Running
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.store import Store
from dbdyno.study.trials import Plan, Trial
from dbdyno.trial.bench import Bench
from dbdyno.trial.check import check
from dbdyno.trial.draft import Draft
from dbdyno.trial.drive import drive
from dbdyno.trial.observe import Observer
from dbdyno.trial.prepare import prepare
from dbdyno.trial.verify import exercised, require_in_effect, verify


class Progress(Protocol):
    """Whoever wants to see a run go on."""

    def trial_began(self, trial: Trial) -> None: ...

    def stage_began(self, trial: Trial, stage: str) -> None: ...

    def trial_ended(self, record: Record) -> None: ...


Settled = Callable[[list[Record]], frozenset[str]]
"""Which variants need no further trial, from the records of whole blocks."""


Replan = Callable[[list[Record]], Plan]
"""The plan made anew from the records of the first block; that block stays as it was."""


def run_study(
    plan: Plan,
    bench: Bench,
    store: Store,
    progress: Progress,
    settled: Settled | None = None,
    replan: Replan | None = None,
) -> list[Record]:
    """Carries out the trials that have no record yet, in the plan's order. Returns all the run's records.

    With `settled`, a variant is left out of the blocks after the one that settled it, and the run ends when
    none is left. What is left out follows from the records alone, so a resumed run leaves out the same.
    """
    records = {record.trial: record for record in store.records(bench.run.run)}
    for block in count():
        if block == 1 and replan:
            plan = replan([record for record in records.values() if record.block == 0])
        trials = [trial for trial in plan.trials if trial.block == block]
        if not trials:
            break
        earlier = [record for record in records.values() if record.block < block]
        over = settled(earlier) if settled and block else frozenset[str]()
        if len(over) >= sum(not variant.twin for variant in plan.variants) - 1 and over:
            break
        for trial in trials:
            if trial.index not in records and trial.variant.name not in over:
                records[trial.index] = run_trial(trial, bench, store, progress)
            _require_hope(plan, records)
    store.finish_run(bench.run.run)
    return [records[trial.index] for trial in plan.trials if trial.index in records]


Beside = Callable[[Running], AbstractContextManager[object]]
"""What else looks on while the load runs."""


def run_trial(
    trial: Trial, bench: Bench, store: Store, progress: Progress, beside: Beside = nullcontext
) -> Record:
    """One trial, every stage in order. Whatever happens the host is put back, and a failure is a record
    too."""
    draft = Draft(trial, bench, progress.stage_began)
    progress.trial_began(trial)
    with restoring(draft, bench, store) as undo:
        with draft.catching():
            with draft.stage("prepare"):
                running = draft.started(*prepare(trial, bench, undo))
            with draft.stage("verify"):
                draft.evidence = verify(running, bench.levels_by_layer(trial), bench.layers)
                require_in_effect(draft.evidence)
            with (
                draft.stage("drive"),
                beside(running),
                Observer(running.process_ids, bench.engine.embedded) as observer,
            ):
                running = drive(running)
            with draft.stage("check"):
                observation = draft.driven(running, observer.observation(running))
                draft.evidence = exercised(draft.evidence, running, bench.layers)
                require_in_effect(draft.evidence)
                draft.judged(*check(running, observation, bench.cores))
        with draft.stage("record"):
            store.add_record(draft.record())
    progress.trial_ended(draft.record())
    return draft.record()


@contextmanager
def restoring(draft: Draft, bench: Bench, store: Store) -> Iterator[ExitStack]:
    """Whatever happens within, stops what runs and undoes the journal; then notes in the record how that
    went."""
    mark, undo = bench.journal.mark(), ExitStack()
    try:
        yield undo
    finally:
        interruption = sys.exc_info()
        with shielded(), draft.stage("restore"):
            try:
                undo.__exit__(*interruption)
            except ServerFailed as failure:
                draft.warn(Doubt.SERVER_LOG, failure.message)
            finally:
                bench.journal.undo_to(mark)
    store.add_record(draft.record())


def _require_hope(plan: Plan, records: Mapping[int, Record]) -> None:
    """A whole block without one measured trial: the rest would only fail the same way."""
    if len(records) != len(plan.variants) or any(one.outcome is Outcome.MEASURED for one in records.values()):
        return
    first = records[min(records)]
    raise DynoError(
        f"no trial of the first block could be measured; {first.variant}: {first.cause}", first.remedy
    )
