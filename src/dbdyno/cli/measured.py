"""A study that is measured here: its builds are made, and its trials are carried out."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from dbdyno import __version__
from dbdyno.applications.registry import installed
from dbdyno.cli.adapted import seed_of
from dbdyno.cli.analysed import losses_of
from dbdyno.cli.arrangement import server_bytes
from dbdyno.cli.beginning import name_of_run
from dbdyno.cli.building import make_builds, wishes_of
from dbdyno.cli.counted import counted_text, why_counted
from dbdyno.cli.given import data_of
from dbdyno.cli.progress import OfReference, Quiet, shown, told_to
from dbdyno.cli.searching import Searching, told_of
from dbdyno.cli.stored_study import application_of, facts_of
from dbdyno.cli.training import training_on
from dbdyno.datasets.vectors import with_vector_set
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.gate import pass_gate
from dbdyno.host.allowed import Allowed
from dbdyno.host.callgrind import Callgrind
from dbdyno.host.fingerprint import core_count, fingerprint
from dbdyno.host.journal import Journal, open_journal
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.installation import Installation
from dbdyno.plan import ask_for
from dbdyno.plan import reference as reference_plan
from dbdyno.plan.search.dropping import can_drop, hopeless
from dbdyno.records.record import Record, Run
from dbdyno.records.store import Store
from dbdyno.run import Side, on_this_host, run_in_turn, run_study
from dbdyno.study import Design, Study
from dbdyno.study.designs import trials_in_all
from dbdyno.trial.bench import Bench, nobody
from dbdyno.trial.count import require_countable


@dataclass(frozen=True)
class Measured:
    """A study, its run, and the engine that it measures."""

    study: Study
    run: Run
    installation: Installation


def new_run(study: Study, path: Path, installation: Installation, name: str = "") -> Run:
    """A run of a study that begins now on this host. Raises UserError for vectors and for an application
    that cannot be had, which would end every trial of it."""
    application = application_of(study)
    tell = partial(click.echo, err=True)
    with_vector_set(study.workload.name, study.workload.options, study.folder, tell)
    return Run(
        run=name or name_of_run(),
        study_path=str(path),
        study_text=study.text,
        study_digest=study.digest,
        study_folder=str(study.folder),
        files=study.files,
        configuration=study.configuration,
        seed=seed_of(study),
        mirrored=True,
        blocks=study.blocks,
        created_unix_s=time.time(),
        dyno_version=__version__,
        host=fingerprint(),
        installation={**facts_of(installation), **({"application": application} if application else {})},
        arrangement=study.arrangement,
        slice_s=study.slice_s,
        data=data_of(study, partial(click.echo, err=True)),
        given_up=None if study.design is Design.SEARCH else losses_of(study),
    )


@dataclass(frozen=True)
class Here:
    """What the runs of one call share. All their trials take about `trials_s`."""

    store: Store
    trials_s: float
    quiet: bool
    allowed: Allowed

    def tell(self, line: str) -> None:
        """Says what is done before the first trial."""
        if not self.quiet:
            click.echo(line, err=True)


def make_builds_of(measured: Measured, reference: Measured | None, here: Here) -> None:
    """Makes the builds of both sides before the first trial, so that no compiler disturbs one, and has each
    pass the correctness gate. Raises UserError where the run was begun with others, and BaselineFailed where
    that of a baseline does not pass."""
    with open_journal() as journal:
        for side in filter(None, (measured, reference)):
            bench = replace(bench_of(side, journal, None, here.allowed), tell=here.tell)
            make_builds(
                side.study,
                wishes_of(side.study, of_reference=side is reference),
                training_on(bench, here.tell),
                here.tell,
                partial(here.store.records, side.run.run),
                partial(pass_gate, bench, here.tell),
            )


def carry_out(measured: Measured, reference: Measured | None, here: Here) -> list[Record]:
    """Carries out all trials that are left of the run, with a reference in turn with it. Returns the run's
    records."""
    study, run, store = measured.study, measured.run, here.store
    trials = trials_in_all(study) + (study.blocks if reference is not None else 0)
    with ExitStack() as stack:
        journal, callgrind = stack.enter_context(open_journal()), _callgrind(study, stack)
        bench = replace(bench_of(measured, journal, callgrind, here.allowed), tell=here.tell)
        if study.design is Design.SEARCH and run.soak is None:
            return _searched(bench, here)
        progress = Quiet() if here.quiet else stack.enter_context(shown(trials, study, here.trials_s))
        bench = replace(bench, tell=progress.say)
        ask = told_to(progress, ask_for(run), store)
        if reference is None:
            return run_study(study, run, ask, on_this_host(bench, store, progress), store)
        store.add_run(reference.run)
        store.change_run(reference.run)
        # It has trials only beside this run's, so nobody goes on with it alone.
        store.finish_run(reference.run.run)
        again = bench_of(reference, journal, callgrind, here.allowed)
        sides = Side(ask_for(run), bench, progress), Side(reference_plan.ask, again, OfReference(progress))
        return run_in_turn(*sides, store)[0]


def _searched(bench: Bench, here: Here) -> list[Record]:
    """Carries out a search, whose progress is not counted in trials."""
    study, run, store = bench.study, bench.run, here.store
    progress = Quiet() if here.quiet else Searching(study, run)
    ask = told_of(progress, ask_for(run, partial(server_bytes, study)))
    return run_study(study, run, ask, on_this_host(bench, store, progress), store)


def bench_of(measured: Measured, journal: Journal, callgrind: Callgrind | None, allowed: Allowed) -> Bench:
    """The bench of a run, with what counts its trials under Valgrind, if they are to be."""
    return Bench(
        study=measured.study,
        run=measured.run,
        engine=registry.engine(measured.study.engine.engine),
        installation=measured.installation,
        layers=LAYERS,
        journal=journal,
        open_load=LoadProcess,
        cores=core_count(),
        allowed=allowed,
        callgrind=callgrind if why_counted(measured.study) else None,
        counter=callgrind,
        application=installed(measured.study.application),
        drop=hopeless if can_drop(measured.study) else nobody,
    )


def _callgrind(study: Study, stack: ExitStack) -> Callgrind | None:
    """What counts instructions: of all trials where they are the response and the CPU's own counters cannot
    be read, or beside the timed ones."""
    told = why_counted(study) or counted_text(study)
    if not told:
        return None
    require_countable(study)
    click.echo(told, err=True)
    return Callgrind(Path(stack.enter_context(TemporaryDirectory(prefix="dyno-counted-"))))
