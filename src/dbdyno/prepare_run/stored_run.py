"""What runs of the store say: the analysis of one, what all runs of a study and of a store say together, and
what earlier runs tell a budget of this host's noise.

The columns of a long run that is over are kept as Parquet beside the readings of a store (`readings.py`), and
follow from the same. The head names the file of the arrays, which is there before it. So what a head names is
whole, and a torn file is made again.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from pydantic import ValidationError

from dbdyno.analyse import Analysis, Axis
from dbdyno.analyse.analysis import AnalysisInput, spreads_within
from dbdyno.analyse.columns import Floats, Places
from dbdyno.analyse.floor import TRIALS_MOST
from dbdyno.analyse.found import Components
from dbdyno.analyse.kept import Arrays, Head, Keeping, Read, kept_input
from dbdyno.analyse.museum import Museum, RunOfMuseum, collection, run_of_museum
from dbdyno.analyse.quantiles import Spreads
from dbdyno.analyse.trend import Omission, TrendRun, run_of_trend
from dbdyno.calibrate.finding import STARTS_SD
from dbdyno.calibrate.kept import Calibration, calibrated_host, load_of
from dbdyno.engines import registry
from dbdyno.errors import DynoError, StudyError, UserError
from dbdyno.findings import analyse
from dbdyno.findings.registered import Belonging
from dbdyno.frozen import ENGINE_FACTOR, Frozen
from dbdyno.host import paths
from dbdyno.host.cache import Tell, keep_beside
from dbdyno.host.fingerprint import host_identity
from dbdyno.plan.budget import guessed
from dbdyno.prepare_run.estimate import beside_load_s
from dbdyno.prepare_run.stored_study import asked_of, is_of, require_one_data, require_speeds, study_of
from dbdyno.prepare_run.study_here import given_up_by, with_losses
from dbdyno.records.chain import Rerun
from dbdyno.records.readings import Readings, nothing_between
from dbdyno.records.record import Record
from dbdyno.records.run import Run, RunSummary
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import day_text, plural
from dbdyno.report.words.safe import argument
from dbdyno.study import Design, Study
from dbdyno.study.differences import difference

if TYPE_CHECKING:
    from dbdyno.analyse.compare import Comparison

RECORDS_LEAST = 2_000
"""Fewer records are read again in the time that reading a file of columns takes."""


def given(store: Store, run: Run) -> AnalysisInput | list[Record]:
    """What an analysis of a run is given: columns of a long run that is over, and else its records. Raises
    DynoError where a record cannot be read."""
    summary, readings = store.summary(run), Readings(store)
    if not summary.finished or sum(summary.outcomes.values()) < RECORDS_LEAST:
        return store.records(run.run)
    reread = partial(store.records_of_trials, run.run)
    place = readings.place_of(summary, "Columns")
    follows_from = readings.follows_from(summary)
    if place is not None and (found := kept_at(place, follows_from)) is not None:
        return kept_input(*found, reread)
    keeping = Keeping().add_all(store.each_record(run.run))
    head, arrays = keeping.head(), keeping.arrays()
    if place is not None:
        keep_at(place, follows_from, head, arrays)
    return kept_input(head, arrays.__getitem__, reread)


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
    return analysed(study, run, found if isinstance(found, AnalysisInput) else some_of(found, run))


def some_of(records: Sequence[Record], run: Run) -> Sequence[Record]:
    """The records of a run. Raises UserError where it has none yet."""
    if not records:
        raise UserError(f"run {run.run} has no trial yet", f"dyno run --resume {run.run}")
    return records


def analysed(study: Study, run: Run, records: Sequence[Record] | AnalysisInput) -> Analysis:
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


def compared_sides(left: Side, right: Side, ends: tuple[str, str] | None = None) -> Comparison:
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
        if not run.asks_as_its_study:
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
        return run_of_trend(analysed(study_of(run), run, records)) if records else None

    found = readings.of(summary, TrendRun, read) or run_of_trend(analysed(study_of(run), run, []))
    return found.but(name=summary.name, note=summary.note)


RUNS_MOST = 5
"""The latest ones: a host changes, and each costs the reading of its records."""
BLOCKS_SUPPOSED = 6
"""What is supposed of starts weighs as much as so many measured blocks, because few blocks whose starts seem
not to vary at all would ask for very long trials."""


class EstimateBasis(Frozen):
    """How speeds are taken to spread, what a trial is taken to need beside its load, and where both are from.
    `measured` tells spreads that were seen here from a guess."""

    spreads: Spreads
    overhead_s: float
    words: str
    measured: bool = True


def estimate_basis(study: Study, store: Store | None, made: Calibration | None) -> EstimateBasis:
    """Of a study that is arranged and begins now on this host; `made` is the calibration that it takes over.
    A plan may have no store."""
    overhead, of_trials = _overhead(study, store)
    seen = list(islice(_seen(study, store, made), RUNS_MOST)) if store is not None else []
    if seen:
        latest = day_text(max(began for began, _ in seen))
        spreads = _pooled([one for _, one in seen])
        words = f"spreads by {plural(len(seen), 'earlier run')} of this load here, the latest of {latest}"
    elif made is not None:
        spreads = made.best.spreads
        words = f"spreads by the calibration, and starts supposed to vary by {STARTS_SD:.0%}"
    else:
        spreads = guessed(study)
        words = f"fitted to guessed spreads, {spreads.starts:.0%} from start to start and "
        words += f"{spreads.seconds:.0%} from second to second"
    measured = bool(seen) or made is not None
    return EstimateBasis(
        spreads=spreads, overhead_s=overhead, words=f"{words}; {of_trials}", measured=measured
    )


def _overhead(study: Study, store: Store | None) -> tuple[float, str]:
    """Seconds beside the load, with the words for them."""
    taken_s, seen = beside_load_s(store, study)
    return taken_s, f"{taken_s:.1f} s beside the load of a trial, {seen.words}"


def _seen(study: Study, store: Store, made: Calibration | None) -> Iterator[tuple[float, Components]]:
    """When earlier runs of the study's load on this host began, and what they found, the latest first."""
    here, bound = calibrated_host(host_identity()), made.used.settings if made else None
    for summary in store.runs():
        run = summary.run
        comparable = run.in_blocks and run.arrangement is study.arrangement
        if not comparable or calibrated_host(run.host) != here:
            continue
        if (run.calibrated.settings if run.calibrated else None) != bound:
            continue
        if (found := _found(study, store, summary)) is not None:
            yield run.created_unix_s, found


def _found(study: Study, store: Store, summary: RunSummary) -> Components | None:
    """What one run found; None where it had another load or too few blocks, or cannot be read."""
    with suppress(DynoError, OSError):
        earlier = study_of(summary.run)
        if load_of(earlier) == load_of(study):
            records = list(islice(store.each_record(summary.run.run), TRIALS_MOST))
            return spreads_within(earlier, records)
    return None


def _pooled(seen: Sequence[Components]) -> Spreads:
    """Variances by the blocks that they were found in, and those of starts with what is supposed of them.
    Pieces that resemble their neighbours tell less than independent ones, so their spread counts for more."""
    blocks = sum(one.blocks for one in seen)
    starts = sum(one.blocks * one.starts**2 for one in seen) + BLOCKS_SUPPOSED * STARTS_SD**2
    seconds = sum(one.blocks * (one.pieces * one.alike) ** 2 * one.piece_s for one in seen)
    return Spreads(starts=math.sqrt(starts / (blocks + BLOCKS_SUPPOSED)), seconds=math.sqrt(seconds / blocks))


HELD_MOST = 5
"""Of the gates that a run served, so many are named one by one, the latest."""


def belongings_of(store: Store, analysis: Analysis, reruns: Sequence[Rerun]) -> tuple[Belonging, ...]:
    """What belongs to a run: its flame graphs, what it was held against and what was held against it, the run
    of the same study before it, the trend that it is a point of, and the recipe of what helped. `reruns` are
    all runs of its study."""
    run = analysis.run
    later = store.held_since(run)
    found = [*_flame_graphs(run), *_held_against(store, run), *_gates(store, run, later)]
    if store.summary(run).finished and run.compares and not run.of_logs:
        is_reference = any(one.took_turns_with == run.run for one in later)
        found += [] if is_reference else _over_time(run, reruns)
        found += _recipe(analysis)
    return tuple(found)


def _flame_graphs(run: Run) -> Iterator[Belonging]:
    for page, variants in paths.flame_graphs(run.run):
        named = variants[0]
        what = f"flame graph of {named}"
        if variants[1:]:
            what = f"difference of the flame graphs of {named} and {variants[1]}"
        yield Belonging(what=what, path=f"/profile/{quote(page.name)}", page=quote(page.name))


def _report(run: str, what: str) -> Belonging:
    """The report of another run, whose page may lie among the reports."""
    page = paths.page_of_run(run)
    return Belonging(
        what=what,
        command=f"dyno report {argument(run)}",
        path=f"/run/{quote(run)}",
        page=quote(page.name) if page.is_file() else "",
    )


def _held_against(store: Store, run: Run) -> Iterator[Belonging]:
    """The other side of the gate that the run's own page begins with."""
    again, named = run.took_turns_with, run.held_against
    if again and store.has_run(again):
        yield _report(again, f"run {again}, which took turns with this one in its gate")
    if named:
        with suppress(DynoError):
            key = store.key(named)
            called = "" if key == named else f", which {named} stands for now"
            yield _report(key, f"run {key}{called}, which this run was held against")


def _gates(store: Store, run: Run, later: Sequence[Run]) -> Iterator[Belonging]:
    def stands_for_it(name: str) -> bool:
        try:
            return bool(name) and store.key(name) == run.run
        except DynoError:
            # A baseline that is no more, or the file of a study.
            return False

    of_it = [
        one
        for one in later
        if one.run != run.run and (one.took_turns_with == run.run or stands_for_it(one.held_against))
    ]
    for one in of_it[:HELD_MOST]:
        took_turns = one.took_turns_with == run.run
        how = "took turns with this one" if took_turns else f"was held against {one.held_against}"
        yield _report(one.run, f"gate of run {one.run}, which {how}").but(
            command=f"dyno gate {argument(one.run)}"
        )
    if more := of_it[HELD_MOST:]:
        yield Belonging(what=f"and {plural(len(more), 'earlier gate')} against this run")


def _over_time(run: Run, reruns: Sequence[Rerun]) -> Iterator[Belonging]:
    """Nothing where no other run of the study is left."""
    kept = [one.run for one in reruns if one.kept]
    if run.run not in kept or not kept[1:] or not run.asks_as_its_study:
        return
    own = argument(run.run)
    yield Belonging(what="trend of its study", command=f"dyno trend {own}", path=f"/trend/{quote(run.run)}")
    if before := kept[: kept.index(run.run)]:
        last = before[-1]
        yield Belonging(
            what=f"compared with run {last}, the one before",
            command=f"dyno compare {argument(last)} {own}",
            path=f"/compare/{quote(last)}/{quote(run.run)}",
        )


def _recipe(analysis: Analysis) -> Iterator[Belonging]:
    """Of the variant that is faster than each other that helped; nothing where there is none, or where no
    recipe installs what it runs."""
    best = None if analysis.answer.level else next(iter(analysis.answer.faster), None)
    variant = next((one for one in analysis.variants if one.name == best), None)
    known = registry.engine(analysis.study.engine.engine).production is not None
    if variant is None or not known or ENGINE_FACTOR in variant.changed:
        return
    run = analysis.run.run
    yield Belonging(
        what=f"recipe of {variant.name}", command=f"dyno recipe {argument(run)}", path=f"/recipe/{quote(run)}"
    )
