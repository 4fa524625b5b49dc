"""What a trend needs: the finished runs of one study, and what each of them says.

The museum of a store: what did not help in any of its runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from dbdyno.analyse import Axis
from dbdyno.analyse.museum import Museum, RunOfMuseum, collection, run_of_museum
from dbdyno.analyse.trend import Omission, TrendRun, run_of
from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import is_of, study_of
from dbdyno.errors import StudyError
from dbdyno.records.readings import Readings, nothing_between
from dbdyno.records.run import Run, RunKind, RunSummary
from dbdyno.records.store import Store
from dbdyno.study import Study


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


def sorted_out(study: Study, summaries: Sequence[RunSummary]) -> tuple[list[RunSummary], Counter[Omission]]:
    """The study's own finished runs, and how many of it are left out. Runs of other studies do not count."""
    references = {summary.run.took_turns_with for summary in summaries}
    asks_the_same: dict[tuple[str, str], bool] = {}
    own: list[RunSummary] = []
    left_out: Counter[Omission] = Counter()
    for summary in summaries:
        run = summary.run
        if run.kind is RunKind.BISECTION:
            # It compares commits or settings that the study itself does not.
            continue
        text = run.study_digest, run.configuration.digest if run.configuration else ""
        # Few studies have many runs, and reading one takes longer than all else here.
        if text not in asks_the_same:
            asks_the_same[text] = is_of(run, study)
        if not asks_the_same[text]:
            left_out[Omission.CHANGED] += Path(run.study_path).name == Path(study.path).name
        elif not run.compares:
            left_out[Omission.SOAK] += 1
        elif run.run in references:
            left_out[Omission.REFERENCE] += 1
        elif not summary.finished:
            left_out[Omission.UNFINISHED] += 1
        else:
            own.append(summary)
    return own, left_out


def latest(
    found: Sequence[RunSummary], age_s: float | None, limit: int, left_out: Counter[Omission]
) -> list[RunSummary]:
    """The runs that are young enough, and no more than the limit; the others are counted."""
    since_unix_s = time.time() - age_s if age_s is not None else 0.0
    young = [summary for summary in found if summary.run.created_unix_s >= since_unix_s]
    left_out[Omission.OLDER] += len(found) - len(young)
    left_out[Omission.BEYOND_LIMIT] += len(young[limit:])
    return young[:limit]


def with_ratio(
    store: Store,
    found: Sequence[RunSummary],
    left_out: Counter[Omission],
    between: Callable[[], None] = nothing_between,
) -> list[TrendRun]:
    """What a trend needs of those runs that have a ratio; the others are counted. `between` is called before
    each run is read."""
    readings, shown = Readings(store), []
    for summary in found:
        between()
        one = _reading(store, readings, summary)
        if any(ratio.effect for ratio in one.ratios):
            shown.append(one)
    left_out[Omission.WITHOUT_RATIO] += len(found) - len(shown)
    return shown


def on_axis(axis: Axis, runs: list[TrendRun], left_out: Counter[Omission]) -> list[TrendRun]:
    """The runs that have a place on an axis; the others are counted."""
    if axis is not Axis.COMMIT:
        return runs
    known = [run for run in runs if run.commit is not None]
    left_out[Omission.WITHOUT_COMMIT] += len(runs) - len(known)
    return known


def _reading(store: Store, readings: Readings, summary: RunSummary) -> TrendRun:
    """What a trend needs of a run, with the name and note that it has now."""
    run = summary.run

    def read() -> TrendRun | None:
        records = store.readable_records(run.run)
        return run_of(analysed(study_of(run), run, records)) if records else None

    found = readings.of(summary, TrendRun, read) or run_of(analysed(study_of(run), run, []))
    return found.but(name=summary.name, note=summary.note)
