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
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from dbdyno.analyse import Analysis
from dbdyno.analyse.analysis import Given
from dbdyno.analyse.columns import Floats, Places
from dbdyno.analyse.kept import Arrays, Head, Keeping, Read, given_of
from dbdyno.begin.begun import given_up_by, with_losses
from dbdyno.begin.stored_study import asked_of, is_of, require_one_data, require_speeds, study_of
from dbdyno.errors import UserError
from dbdyno.findings import analyse
from dbdyno.host.cache import Tell, keep_beside
from dbdyno.records.readings import Readings
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Design, Study
from dbdyno.study.differences import difference

if TYPE_CHECKING:
    from dbdyno.analyse.compare import Comparison

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


Side = Sequence[Analysis]
"""The runs of one side of a comparison."""


def side_of(store: Store, *names: str) -> list[Analysis]:
    """The analyses of runs by their names."""
    runs = [store.run(name) for name in names]
    for run in runs:
        require_speeds(run)
    return [analysed(study_of(run), run, store.records(run.run)) for run in runs]


def compared(left: Side, right: Side, ends: tuple[str, str] | None = None) -> Comparison:
    """Two sides beside each other, by a variant of each where `ends` names them. Raises UserError where they
    cannot be compared."""
    # Here, because few who read a run compare it.
    from dbdyno.analyse.compare import compare
    from dbdyno.layers.registry import related_factors

    require_comparable(left, right)
    found = compare(left, right, ends=ends, related=related_factors())
    if not found.gaps:
        raise UserError("no variant was measured in both runs", "see: dyno report RUN")
    return found


def require_comparable(left: Side, right: Side) -> None:
    """Raises UserError where a run is named twice, the runs ask different things, or a side has two hosts."""
    first, *others = [one.run for side in (left, right) for one in side]
    names = [run.run for run in (first, *others)]
    if len(set(names)) < len(names):
        raise UserError("a run cannot be compared with itself", "name each run once; see: dyno runs")
    for other in others:
        require_one_study(first, other)
    for side in (left, right):
        hosts = sorted({one.run.host.name or "" for one in side})
        if len(hosts) > 1:
            raise UserError(
                f"the runs of one side were measured on different hosts: {', '.join(hosts)}",
                "name runs of one host on each side",
            )


def require_one_study(left: Run, right: Run) -> None:
    """Raises UserError where two runs ask different things."""
    if not is_of(left, asked_of(right)):
        raise UserError(
            f"these are runs of different studies: {left.run} of {left.study_path}, "
            f"{right.run} of {right.study_path}",
            "compare runs of one study; its file may be spelled otherwise",
        )
    if found := difference(left.files, right.files):
        raise UserError(
            f"{left.run} and {right.run} asked different things: {found}",
            "compare runs whose files say the same; see: dyno report RUN --trials --json",
        )
    require_one_data(left, right)
