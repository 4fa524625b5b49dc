"""Stored runs and their variants as arguments of verbs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dbdyno.errors import UserError
from dbdyno.host.host_lock import holder
from dbdyno.records.place import LAST
from dbdyno.records.run import Run
from dbdyno.records.store import Store


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
