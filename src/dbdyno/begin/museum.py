"""The museum of a store: what did not help in any of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dbdyno.analyse.museum import Museum, RunOfMuseum, collection, run_of_museum
from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import study_of
from dbdyno.errors import StudyError
from dbdyno.records.readings import Readings, nothing_between
from dbdyno.records.run import Run
from dbdyno.records.store import RunSummary, Store


def museum_of(
    store: Store, engine: str = "", study: str = "", between: Callable[[], None] = nothing_between
) -> Museum:
    """All runs of this engine, where one is named, and of studies with that text in their path. `between` is
    called before each run is read."""
    summaries, unreadable = store.runs_and_unreadable()
    unread = [one.run for one in unreadable]
    runs = list(_runs(store, summaries, engine, study, unread, between))
    return collection(runs, unread)


def _runs(
    store: Store,
    summaries: Sequence[RunSummary],
    engine: str,
    study: str,
    unread: list[str],
    between: Callable[[], None],
) -> Iterator[RunOfMuseum]:
    """Of these runs those that have records, of this engine where one is named and of studies with that text
    in their path. Those that this Dyno cannot read are added to `unread`."""
    readings = Readings(store)
    for summary in summaries:
        run = summary.run
        if study not in run.study_path or not summary.outcomes or not run.compares:
            continue
        if engine and run.installation.engine not in ("", engine):
            continue
        between()
        found = readings.of(summary, RunOfMuseum, partial(_read, store, run))
        if found is None:
            unread.append(run.run)
        elif engine in ("", found.engine):
            yield found


def _read(store: Store, run: Run) -> RunOfMuseum | None:
    """None where this Dyno cannot read the run's study or its records."""
    try:
        asked = study_of(run)
    except StudyError:
        return None
    records = store.readable_records(run.run)
    return run_of_museum(analysed(asked, run, records)) if records else None
