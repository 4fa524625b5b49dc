"""Which run `dyno run --resume` goes on with, how many blocks it then has, and what is told of
one that is interrupted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dbdyno.cli.options import UNNAMED
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.host.writers import Allowed
from dbdyno.prepare_run.stored_study import is_of, study_of
from dbdyno.prepare_run.study_here import catalogue, study_at
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import is_or_are, plural
from dbdyno.study import Study
from dbdyno.study.designs import trials_in_all


def study_and_run(study: Path | None, resume: str | None) -> tuple[Path | None, str | None]:
    """The study and the run that were meant: in `dyno run --resume STUDY` the option took the argument for
    its own."""
    if resume and study is None and resume.endswith(".toml"):
        return Path(resume), UNNAMED
    return study, resume


def run_to_resume(
    store: Store, path: Path | None, name: str, allowed: Allowed, verb: str = "dyno run"
) -> Run:
    """The run that was named, or the latest unfinished one: of the study at `path`, or of any, after asking.
    It is one that `verb` carries out.

    Raises UserError where there is none, where the two do not belong together, and where nobody can be asked.
    """
    if name != UNNAMED:
        run = store.run(name)
        if run.verb != verb:
            told = f"run {run.run} is {run.words}, which {verb} does not carry out"
            raise UserError(told, f"{run.verb} --resume {run.run}")
        return _of_study(run, path, allowed)
    unfinished = [run for run in store.unfinished_runs() if run.verb == verb]
    if path is not None:
        return _unfinished(unfinished, path, allowed)
    if not unfinished:
        raise UserError(f"no unfinished run in {store.place}", "see: dyno runs")
    _ask(store, unfinished[0])
    return unfinished[0]


def interrupted(
    store: Store,
    run: Run | None,
    allowed: Allowed,
    add_blocks: int | None = None,
    planned: int | None = None,
) -> int:
    """Tells what is kept of a run, if there is one already, and how to go on, which needs the same to be
    allowed again, and blocks to be added again. Returns the exit code. Without `planned`, as many trials
    were to come as the run's study has."""
    stored = _kept(store, run)
    if stored is None:
        tell("interrupted before the run began: nothing was measured")
        return 130
    kept = sum(record.whole for record in store.records(stored.run))
    trials = _trials_text(kept, planned or _in_all(stored))
    added = f" --add-blocks {add_blocks}" if add_blocks else ""
    tell(f"interrupted: {trials} {is_or_are(kept)} kept")
    tell(f"  go on with: {stored.verb} --resume {stored.run}{added}{allowed.options}")
    return 130


def tell_stopped(store: Store, run: Run | None, allowed: Allowed) -> None:
    """Tells what is kept of a run that a guard of its server stopped, and how to go on."""
    stored = _kept(store, run)
    if stored is None:
        return
    kept = sum(record.whole for record in store.records(stored.run))
    tell(f"stopped: {_trials_text(kept, _in_all(stored))} {is_or_are(kept)} kept")
    tell(f"  go on with: {stored.verb} --resume {stored.run}{allowed.options}")


def _kept(store: Store, run: Run | None) -> Run | None:
    """The run as the store has it; None where it did not come so far."""
    try:
        return store.run(run.run) if run is not None else None
    except UserError:
        return None


def _trials_text(kept: int, in_all: int | None) -> str:
    return f"{kept} of {plural(in_all, 'trial')}" if in_all else plural(kept, "trial")


def _in_all(run: Run) -> int | None:
    """How many trials the run has in all; nobody knows that of a search and of a bisection."""
    study = study_of(run)
    return None if study.search is not None or run.open_ended else trials_in_all(study)


def _read(path: Path, allowed: Allowed) -> Study:
    """The study in a file. It may have no factors, because a bisection needs none."""
    return study_at(path, names=replace(catalogue(allowed=allowed), lone=True))


def _of_study(run: Run, path: Path | None, allowed: Allowed) -> Run:
    if path is not None and not is_of(run, _read(path, allowed)):
        raise UserError(
            f"run {run.run} is not of {path} in its present form",
            f"leave the study out: {run.verb} --resume {run.run}",
        )
    return run


def _unfinished(unfinished: Sequence[Run], path: Path, allowed: Allowed) -> Run:
    study = _read(path, allowed)
    run = next((run for run in unfinished if is_of(run, study)), None)
    if run is None:
        raise UserError(
            f"no unfinished run is of {path} in its present form",
            "see: dyno runs; a changed study needs a new run",
        )
    return run


def _ask(store: Store, run: Run) -> None:
    """Asks on a terminal whether this is the run that is meant. Raises UserError elsewhere."""
    study = study_of(run)
    kept = sum(record.whole for record in store.records(run.run))
    told = f'{run.run}, "{study.title}" ({run.study_path}), {_trials_text(kept, _in_all(run))}'
    if not sys.stdin.isatty():
        raise UserError(
            f"--resume names no run; the latest unfinished one is {told}",
            f"{run.verb} --resume {run.run}, or name the study: {run.verb} STUDY --resume",
        )
    click.echo(f"the latest unfinished run: {told}", err=True)
    click.confirm("Go on with it?", abort=True, err=True)
