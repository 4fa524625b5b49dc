"""The columns of finished runs, kept as Parquet, so that what is analysed again needs few of its records.

They lie beside the readings of a store (`readings.py`), and follow from the same. The head names the file of
the arrays, which is there before it. So what a head names is whole, and a torn file is made again.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from dbdyno.analyse.analysis import Given
from dbdyno.analyse.columns import Floats, Places
from dbdyno.analyse.kept import Arrays, Head, Keeping, Read, given_of
from dbdyno.host.cache import keep_beside
from dbdyno.records.readings import Readings
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store

RECORDS_LEAST = 2_000
"""Fewer records are read again in the time that reading a file of columns takes."""


def given(store: Store, run: Run) -> Given | list[Record]:
    """What an analysis of a run is given: columns of a long run that is over, and else its records. Raises
    DynoError where a record cannot be read."""
    summary, readings = store.summary(run), Readings(store)
    if not summary.finished or sum(summary.outcomes.values()) < RECORDS_LEAST:
        return store.records(run.run)
    reread = partial(store.records_of_trials, run.run)
    place = readings.place_of(summary, "Columns")
    follows_from = readings.follows_from(summary)
    if place is not None and (found := kept_at(place, follows_from)) is not None:
        return given_of(*found, reread)
    keeping = Keeping().add_all(store.each_record(run.run))
    head, arrays = keeping.head(), keeping.arrays()
    if place is not None:
        keep_at(place, follows_from, head, arrays)
    return given_of(head, arrays.__getitem__, reread)


def keep_at(place: Path, follows_from: str, head: Head, arrays: Arrays) -> None:
    """Keeps columns. In a cache that this user cannot write, or on a full disk, nothing is kept."""
    # Here, because it takes longer to import than most commands run.
    import polars

    for older in place.parent.glob(f"{place.name.partition('.')[0]}.*.parquet"):
        with suppress(OSError):
            older.unlink()
    file = place.with_suffix(f".{secrets.token_hex(8)}.parquet")
    try:
        polars.DataFrame(dict(arrays)).write_parquet(file, compression="lz4")
    except (OSError, polars.exceptions.PolarsError):
        with suppress(OSError):
            file.unlink(missing_ok=True)
        return
    keep_beside(place, f"{follows_from}\n{file.name}\n{head.model_dump_json()}\n")


def kept_at(place: Path, follows_from: str) -> tuple[Head, Read] | None:
    """The head, and what reads its arrays; None where they are not those of the run as it is, or torn."""
    import polars

    try:
        first, name, text = place.read_text().split("\n", 2)
        if first != follows_from:
            return None
        head, file = Head.model_validate_json(text), place.with_name(name)
        schema = polars.read_parquet_schema(file)
    except (OSError, ValueError, ValidationError, polars.exceptions.PolarsError):
        return None
    return (head, partial(_array, file)) if set(head.names) <= set(schema) else None


def _array(file: Path, name: str) -> Floats | Places:
    import polars

    found: Floats | Places = np.asarray(polars.read_parquet(file, columns=[name])[name].to_numpy())
    return found
