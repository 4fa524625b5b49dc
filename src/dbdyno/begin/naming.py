"""A run that begins: the name that it gets, and the name and note of its user's."""

from __future__ import annotations

import secrets
import time

from dbdyno.begin.registered import began
from dbdyno.records.run import Run
from dbdyno.records.store import Store


def name_of_run() -> str:
    """A name for a run that begins now: the local time, and digits that tell it from others of that
    second."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def require_free(store: Store, name: str | None) -> None:
    """Raises UserError for a name that the run cannot have, before anything is measured."""
    if name is not None:
        store.require_free(name)


def keep(store: Store, run: Run, name: str | None, note: str) -> None:
    """Keeps a run before its first trial, with its user's name and note where there are some."""
    store.add_run(run, began(run))
    if name is not None:
        store.name_run(run.run, name)
    if note:
        store.note_run(run.run, note)
