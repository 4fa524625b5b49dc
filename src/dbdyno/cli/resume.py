"""Which run `dyno run --resume` goes on with, how many blocks it then has, and what is told of
one that is interrupted."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dbdyno.cli.stored_study import is_of, study_of
from dbdyno.cli.study_file import study_at
from dbdyno.errors import UserError
from dbdyno.plan.blocks import require_few_enough
from dbdyno.records.record import Run
from dbdyno.records.store import Store
from dbdyno.study.designs import trials_in_all

UNNAMED = ""
"""What `--resume` without a name stands for."""


def run_to_resume(store: Store, path: Path | None, name: str) -> Run:
    """The run that was named, or the latest unfinished one: of the study at `path`, or of any, after asking.

    Raises UserError where there is none, where the two do not belong together, and where nobody can be asked.
    """
    if name != UNNAMED:
        return _of_study(store.run(name), path)
    if path is not None:
        return _unfinished(store, path)
    unfinished = store.unfinished_runs()
    if not unfinished:
        raise UserError(f"no unfinished run in {store.place}", "see: dyno runs")
    _ask(store, unfinished[0])
    return unfinished[0]


def extended(run: Run, add_blocks: int) -> Run:
    """The run with more blocks. Its intervals hold at every look from now on, because somebody looked at the
    answer before asking for more."""
    longer = run.model_copy(update={"blocks": run.blocks + add_blocks, "sequential": True})
    require_few_enough(study_of(longer))
    return longer


def interrupted(store: Store, run: Run, add_blocks: int | None) -> int:
    """Tells what is kept and how to go on. Returns the exit code."""
    try:
        stored = store.run(run.run)
    except UserError:
        click.echo("interrupted before the run began: nothing was measured", err=True)
        return 130
    kept, planned = len(store.records(run.run)), trials_in_all(study_of(stored))
    added = f" --add-blocks {add_blocks}" if add_blocks and stored.blocks != run.blocks else ""
    click.echo(f"interrupted: {kept} of {planned} trials are kept", err=True)
    click.echo(f"  go on with: dyno run --resume {run.run}{added}", err=True)
    return 130


def _of_study(run: Run, path: Path | None) -> Run:
    if path is not None and not is_of(run, study_at(path)):
        raise UserError(
            f"run {run.run} is not of {path} in its present form",
            f"leave the study out: dyno run --resume {run.run}",
        )
    return run


def _unfinished(store: Store, path: Path) -> Run:
    study = study_at(path)
    run = next((run for run in store.unfinished_runs() if is_of(run, study)), None)
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
    told = f'{run.run}, "{study.title}" ({run.study_path}), {kept} of {trials_in_all(study)} trials'
    if not sys.stdin.isatty():
        raise UserError(
            f"--resume names no run; the latest unfinished one is {told}",
            f"dyno run --resume {run.run}, or name the study: dyno run STUDY --resume",
        )
    click.echo(f"the latest unfinished run: {told}", err=True)
    click.confirm("Go on with it?", abort=True, err=True)
