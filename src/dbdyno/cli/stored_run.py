"""Stored runs, as verbs read them: the one that is named, and its analysis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import click

from dbdyno.analyse import Analysis, analyse
from dbdyno.analyse.search import with_given_up
from dbdyno.begin.losses import given_up_by, with_losses
from dbdyno.begin.stored_study import asked_of
from dbdyno.errors import UserError
from dbdyno.host.alone import holder
from dbdyno.records.record import Record
from dbdyno.records.run import ImportedRun, Run
from dbdyno.records.store import LAST, Store
from dbdyno.study import Design, Study


def run_to_read(store: Store, name: str) -> Run:
    """The run that a reader names. Where it is under way, and where `last` passes over a run that has no
    result yet, that is told."""
    found, measuring = store.run(name), holder()
    under_way = measuring.run if measuring else ""
    if found.run == under_way:
        click.echo(f"run {found.run} is under way: this is what it has by now", err=True)
    elif name == LAST and (later := store.begun_since(found)):
        state = "is under way and" if under_way in later else "began later and"
        click.echo(f"run {under_way or later[0]} {state} has no result yet: this is {found.run}", err=True)
    return found


def tell_unknown(runs: Iterable[Run]) -> None:
    """Says of runs of earlier versions, which kept no files, that what these said is not known."""
    for run in runs:
        if run.files is not None or isinstance(run, ImportedRun) or not asked_of(run).names_files:
            continue
        told = f"run {run.run} was made by a Dyno that kept no files: whether it asked the same is not known"
        click.echo(told, err=True)


def analysed(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of a run. Of a run that was stored without what its variants give up, it is looked up, and
    of a search, whose candidates nobody knows before."""
    if study.design is Design.SEARCH:
        return with_given_up(analyse(study, run, records), partial(given_up_by, study))
    return analyse(study, with_losses(study, run), records)


def chosen(names: Sequence[str], given: str, whose: str = "the run") -> str:
    """The name that was given, or that of the variant with this number; the baseline has number 0.

    Raises UserError with every name, one a line, where there is none such.
    """
    if given in names:
        return given
    if given.isdecimal() and int(given) < len(names):
        return names[int(given)]
    width = len(str(len(names) - 1))
    listed = "\n".join(f"    {number:>{width}}  {name}" for number, name in enumerate(names))
    raise UserError(f"{whose} has no variant {given!r}", f"give one of these, or its number:\n{listed}")
