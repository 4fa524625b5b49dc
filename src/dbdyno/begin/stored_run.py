"""The analysis of a run of the store.

The columns of finished runs, kept as Parquet, so that what is analysed again needs few of its records.

They lie beside the readings of a store (`readings.py`), and follow from the same. The head names the file of
the arrays, which is there before it. So what a head names is whole, and a torn file is made again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from dbdyno.analyse import Analysis
from dbdyno.analyse.analysis import Given
from dbdyno.analyse.columns import Floats, Places
from dbdyno.analyse.kept import Arrays, Head, Keeping, Read, given_of
from dbdyno.begin.begun import given_up_by, with_losses
from dbdyno.begin.stored_study import asked_of, require_speeds, study_of
from dbdyno.errors import UserError
from dbdyno.findings import analyse
from dbdyno.host.cache import Tell, keep_beside
from dbdyno.records.readings import Readings
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Design, Study

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


def analysis_of(store: Store, run: Run) -> Analysis:
    """The analysis of a run's records. Raises UserError where it has none yet, and for a soak."""
    require_speeds(run)
    return analysed(study_of(run), run, some_of(store.records(run.run), run))


def analysis_to_read(store: Store, run: Run) -> Analysis:
    """The same, but of a long run that is over its trials are read from the store while they are told."""
    require_speeds(run)
    study = study_of(run)
    if study.design is Design.SEARCH:
        # It looks at its records in many ways, and has few.
        return analysis_of(store, run)
    found = given(store, run)
    return analysed(study, run, found if isinstance(found, Given) else some_of(found, run))


def some_of(records: Sequence[Record], run: Run) -> Sequence[Record]:
    """The records of a run. Raises UserError where it has none yet."""
    if not records:
        raise UserError(f"run {run.run} has no trial yet", f"dyno run --resume {run.run}")
    return records


def analysed(study: Study, run: Run, records: Sequence[Record] | Given) -> Analysis:
    """The analysis of a run. Of a run that was stored without what its variants give up, it is looked up, and
    of a search, whose candidates nobody knows before."""
    if study.design is Design.SEARCH:
        # Here, because few runs search.
        from dbdyno.findings.searched import with_given_up

        return with_given_up(analyse(study, run, records), partial(given_up_by, study))
    return analyse(study, with_losses(study, run), records)


def tell_unknown(runs: Iterable[Run], tell: Tell) -> None:
    """Says of runs of earlier versions, which kept no files, that what these said is not known."""
    for run in runs:
        if run.files is not None or run.of_logs or not asked_of(run).names_files:
            continue
        told = f"run {run.run} was made by a Dyno that kept no files: whether it asked the same is not known"
        tell(told)
