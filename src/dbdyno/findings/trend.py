"""One study over its runs: what may be said of each ratio, the runs, and what the figures rest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dbdyno.analyse import Axis
from dbdyno.analyse.compare import RUNS_LEAST, excludes_one
from dbdyno.analyse.intervals import within
from dbdyno.analyse.model import Role
from dbdyno.analyse.trend import (
    READ_AFTER_EACH,
    ChangePoint,
    Movement,
    Omission,
    RunRatio,
    Shift,
    Trend,
    TrendRun,
    VariantTrend,
)
from dbdyno.frozen import listed
from dbdyno.records import metrics
from dbdyno.report.document import Column, ColumnKind, Document, Figure, Lines, Notes, Section, Table, table
from dbdyno.report.words import numbers, safe, verdicts
from dbdyno.report.words.numbers import minute_text, multiple_text

OMITTED = {
    Omission.UNFINISHED: "{runs} not finished",
    Omission.CHANGED: "{runs} of a file of this name that asked something else",
    Omission.REFERENCE: "{runs} measured beside another, for a gate",
    Omission.SOAK: "{runs} that soaked it",
    Omission.WITHOUT_RATIO: "{runs} without a ratio that holds",
    Omission.WITHOUT_COMMIT: "{runs} whose source is no commit",
    Omission.OLDER: "{runs} older than --since",
    Omission.BEYOND_LIMIT: "{runs} beyond --limit",
}
SPEEDS_COMPARE_BADLY = (
    "Speeds of different days compare badly, because a host is never quite the same. Ratios compare better:"
    " within a run, baseline and variant shared each block."
)
CAPTION = (
    "Dot and line: the ratio in each run and its interval. Band: the margin. Dashed: something known changed."
    " Thick: a change point, which the row of runs itself tells; shaded: where it may lie as well."
)
HASH = 12
"""So many digits of a commit's hash are shown."""
ORDERS = {
    Axis.TIME: "",
    Axis.COMMIT: "Runs stand in the order in which the commits of their sources were made.",
    Axis.VERSION: "Runs stand in the order of the versions of their engines.",
}
Cell = Callable[[int, TrendRun], str]


def document(found: Trend) -> Document:
    """What moved, each variant in every run, and the runs."""
    runs = numbers.plural(len(found.runs), "run")
    return Document(
        title=f"{found.title}: {runs}",
        answer=(headline(found),),
        sections=(
            *(_section(found, one, place) for place, one in enumerate(found.variants)),
            _runs(found),
            Section("How to read it", (Notes(tuple(notes(found))),)),
        ),
        eyebrow=f"one study over {runs}",
        heading=found.title,
        facts=tuple(_facts(found)),
        footer=runs,
    )


LABELS: dict[Axis, Callable[[TrendRun], str]] = {
    Axis.TIME: lambda run: began(run)[5:10],
    Axis.COMMIT: lambda run: commit_text(run)[:7],
    Axis.VERSION: lambda run: run.engine.partition(" ")[2] or run.engine,
}
"""A run by its place on the axis of a figure."""


def _said(found: Trend) -> list[tuple[str, str, str, str]]:
    """What a figure says of each run: its name, when it began, what changed, and its label."""
    label = LABELS[found.axis]
    return [(named(run), began(run), changed_text(run), label(run)) for run in found.runs]


def _facts(found: Trend) -> Iterator[tuple[str, str]]:
    yield "Study", found.study_path
    yield "Time", f"{began(found.runs[0])} {numbers.DASH} {began(found.runs[-1])} UTC"
    if same := shared(found):
        yield "All runs", same


def _section(found: Trend, one: VariantTrend, place: int) -> Section:
    ratios = Figure(
        "dbdyno.report.figures.trend:ratios", (found, one.variant, _said(found)), f"ratios-{place}", CAPTION
    )
    rows = table(RATIO_HEADS, ratio_rows(found, one.variant), RATIO_KINDS, first=ColumnKind.FIGURE)
    said = Lines(tuple(sentences(found, one)), bullets=True)
    return Section(one.variant, (said, ratios, rows), aside=ROLES.get(one.role, ""))


def _runs(found: Trend) -> Section:
    speeds = Figure("dbdyno.report.figures.trend:speeds", (found, _said(found)), "speeds")
    return Section(
        "Runs", (speeds, runs_table(found)), aside="The baseline’s speed, over the blocks of each run."
    )


def headline(found: Trend) -> str:
    """What moved, in a sentence or two."""
    if names := _names(one for one in found.variants if _moved(one)):
        return f"Moved: {names}. Days changed as well, so a cause is not told."
    if changes := list(_changes(found)):
        return f"Changed: {'; '.join(changes)}. Days changed as well, so a cause is not told."
    if names := _names(one for one in found.variants if _last_stands_out(found, one)):
        return f"The last run stands out: {names}. One run is no trend, so run the study again."
    if all(shift.ratio is None for one in found.variants for shift in one.shifts) and not any(
        one.against_earlier for one in found.runs[-1].ratios
    ):
        return f"Too few runs: it takes {RUNS_LEAST} under the same conditions before anything can stand out."
    return "No ratio moved, as far as these runs can tell."


def sentences(found: Trend, one: VariantTrend) -> Iterator[str]:
    """What may be said of one variant, and no more."""
    if one.mean is not None:
        wander = f"; from run to run it varied by {_varied(one.mean.log_sd)}"
        yield f"{multiple_text(one.mean)} of the baseline over the last {one.mean.pairs} runs{wander}."
    last = found.runs[-1].ratio(one.variant)
    if last is not None and last.gives_up:
        yield f"It gives up {verdicts.lost(last.gives_up)}."
    if last is not None and last.against_earlier is not None:
        of = f"{multiple_text(last.against_earlier)} of the {last.against_earlier.pairs} runs before it"
        if _stands_out(last, found.margin):
            yield f"The last run stands out: {of}. One run is no trend, so run the study again."
        else:
            yield f"The last run does not stand out: {of}."
    for shift in one.shifts:
        yield _shift_text(shift, found)
    for change in one.change_points:
        yield _change_text(change, found)
        if command := _bisect_text(change, found):
            yield f"Which commit did it: {command}"
    if one.alike is not None:
        yield (
            f"Its runs resemble their neighbours: they correlate by {one.alike.correlation:+.2f}"
            f" (p = {one.alike.p:.2g}). So runs stand out, and changes are found, more often than promised."
        )


def _changes(found: Trend) -> Iterator[str]:
    """Of each variant the last change point that goes beyond the margin."""
    for one in found.variants:
        beyond = [change for change in one.change_points if not _within_margin(change, found)]
        if beyond:
            yield f"{one.variant} from run {_number(beyond[-1].first, found)} on"


def _change_text(change: ChangePoint, found: Trend) -> str:
    """What the row of runs tells by itself."""
    before, after = change.runs
    number = _number(change.first, found)
    earlier, first = found.runs[number - 2], found.runs[number - 1]
    commit = ("commit",) if earlier.commit and first.commit and earlier.commit != first.commit else ()
    changed = *change.changed, *commit
    known = f"{listed(changed)} changed there" if changed else "nothing known changed there"
    small = ", which is within the margin" if _within_margin(change, found) else ""
    return (
        f"Change point at run {number}{_reach_text(change, found)}:"
        f" {numbers.times_text(change.ratio)} times the ratio before it{small}, {after} runs over {before}"
        f" (p = {change.p:.2g}); {known}."
    )


def _reach_text(change: ChangePoint, found: Trend) -> str:
    """Where else it may lie."""
    if change.earliest == change.latest:
        return ""
    return f" (95 %: {_number(change.earliest, found)} to {_number(change.latest, found)})"


def _bisect_text(change: ChangePoint, found: Trend) -> str:
    """The command that finds the commit of a change for the worse, between a run before it and one after it;
    empty where these have no commits of one repository."""
    by_name = {run.run: run.commit for run in found.runs}
    good, bad = by_name.get(change.before), by_name.get(change.after)
    worse = (change.ratio < 1.0) == metrics.find(found.metric).higher_is_better
    if good is None or bad is None or not worse or good.repository != bad.repository:
        return ""
    if good.hash == bad.hash or good.committed_unix_s > bad.committed_unix_s:
        return ""
    study = safe.argument(found.study_path)
    return f"dyno bisect {study} --good {good.hash[:HASH]} --bad {bad.hash[:HASH]}"


def _within_margin(change: ChangePoint, found: Trend) -> bool:
    return abs(math.log(change.ratio)) <= math.log1p(found.margin)


def _number(run: str, found: Trend) -> int:
    """A run's place in the tables."""
    return next(place for place, one in enumerate(found.runs, 1) if one.run == run)


def _shift_text(shift: Shift, found: Trend) -> str:
    before, after = shift.runs
    number = _number(shift.first, found)
    what = f" ({listed(shift.changed)} changed)" if shift.changed else ""
    head = f"From run {number} on{what}"
    if shift.ratio is None:
        return f"{head}: too few runs to say, {before} before and {after} after; it takes {RUNS_LEAST} each."
    ratio = f"{multiple_text(shift.ratio)}, {after} runs over {before}"
    if shift.movement is Movement.SAME:
        told = "; ".join(filter(None, (ratio, numbers.narrower_text(shift.ratio))))
        return f"{head}: unchanged within the margin of {numbers.share_text(found.margin)} ({told})."
    if shift.movement is Movement.OPEN:
        return f"{head}: {ratio}. More runs would tell whether it moved."
    if shift.changed:
        return f"{head} the ratio moved: {ratio}. Days changed as well, so the cause is not told."
    return f"{head} the ratio moved: {ratio}. Nothing known changed there but the days."


def shared(found: Trend) -> str:
    """Engine and host of all runs, as far as they have one alone."""
    facts = [{run.engine for run in found.runs}, {run.host for run in found.runs}]
    return " · ".join(one.pop() for one in facts if len(one) == 1)


RATIO_HEADS = ("#", "began", "variant / baseline", "to the runs before it", "says")
RATIO_KINDS = dict.fromkeys(RATIO_HEADS[1:], ColumnKind.PHRASE)
ROLES = {
    Role.TWIN: "The baseline again: its ratio is 1 but for noise.",
    Role.PLACEBO: "A placebo: the baseline’s code at other addresses.",
}
"""What is special of a variant."""


def ratio_rows(found: Trend, variant: str) -> list[tuple[str, ...]]:
    """One variant in every run."""
    return [
        (str(place), began(run), *_ratio_cells(run.ratio(variant), found, run))
        for place, run in enumerate(found.runs, 1)
    ]


def notes(found: Trend) -> Iterator[str]:
    """What the speeds are worth, how the intervals were made, and which runs are missing."""
    if found.speed_log_sd is not None:
        ratios = [one.mean.log_sd for one in found.variants if one.mean is not None and one.mean.log_sd]
        beside = f", and the ratios by {_varied(math.fsum(ratios) / len(ratios))}" if ratios else ""
        varied = (
            f" Here the baseline's speed varied by {_varied(found.speed_log_sd)} from run to run{beside}."
        )
    else:
        varied = ""
    yield f"{SPEEDS_COMPARE_BADLY}{varied}"
    yield (
        "The run is the unit, because all its blocks share a day. A ratio in a run has the interval of that"
        " run's report. All else has Student's or Welch's intervals over runs: none on this page is wrong,"
        f" with a confidence of {numbers.share_text(found.confidence)}. An earlier run that stood out"
        " did so by itself: of many runs one does by chance. Change points are searched in the row of all"
        " runs (E-divisive, with a test by permutations): of pages without a change at most"
        f" {numbers.share_text(1.0 - found.confidence)} show one, if runs do not depend on each other."
    )
    if read := [count for count in READ_AFTER_EACH if count <= len(found.runs)]:
        often = numbers.coarse_text(READ_AFTER_EACH[read[-1]])
        yield (
            f"Each page keeps that by itself. Who reads one after each of {read[-1]} equal runs meets an"
            f" alarm in {often} of cases, for each variant (simulated): wait for the next run before you act."
        )
    yield from _beyond_blocks(found)
    if order := ORDERS[found.axis]:
        yield order
    if any(run.doubtful for run in found.runs):
        doubtful = [str(place) for place, run in enumerate(found.runs, 1) if run.doubtful]
        yield f"Runs with doubtful trials: {', '.join(doubtful)}; see dyno report RUN."
    if found.left_out:
        yield f"Left out: {omitted(found.left_out)}."


def _beyond_blocks(found: Trend) -> Iterator[str]:
    """Of the variant whose runs differ most beyond their blocks."""
    known = [(one.beyond_blocks, one.variant) for one in found.variants if one.beyond_blocks is not None]
    if not known:
        return
    most, name = max(known, key=lambda one: one[0].ratio / one[0].limit)
    told = (
        f"Runs against blocks: over the last {most.runs} runs the ratio of {name} varied"
        f" {numbers.times_text(most.ratio)} times as much as its blocks explain (F; by chance up to"
        f" {numbers.times_text(most.limit)} in 95 % of cases)"
    )
    yield f"{told}, so a single run's interval is too narrow." if most.shown else f"{told}."


def omitted(left_out: dict[Omission, int]) -> str:
    """How many runs are left out, and why."""
    return "; ".join(
        OMITTED[why].format(runs=numbers.plural(count, "run")) for why, count in left_out.items()
    )


def began(run: TrendRun) -> str:
    """When a run began, in UTC."""
    return minute_text(run.began_unix_s)


def named(run: TrendRun) -> str:
    """A run with its user's name and note."""
    return "; ".join(filter(None, (run.run, run.name, run.note)))


def changed_text(run: TrendRun) -> str:
    """What changed since the run before it, and to what."""
    return "; ".join(f"{one}: {run.circumstances[one]}" for one in run.changed)


def commit_text(run: TrendRun) -> str:
    """The commit of a run's source, and whether it was changed."""
    if run.commit is None:
        return numbers.DASH
    return run.commit.hash[:HASH] + (" and changes" if run.commit.changed else "")


def runs_table(found: Trend) -> Table:
    """The runs with their baseline's speed. What is the same for all of them stands in `shared`."""
    metric = metrics.find(found.metric)
    columns: list[tuple[Column, Cell]] = [
        (Column("#"), lambda place, run: str(place)),
        (Column("began", ColumnKind.PHRASE), lambda place, run: began(run)),
        (Column("run", ColumnKind.TEXT), lambda place, run: named(run)),
        (
            Column(f"baseline, {metric.unit or metric.title}", ColumnKind.PHRASE),
            lambda place, run: _speed(run, metric),
        ),
    ]
    if len({run.engine for run in found.runs}) > 1:
        columns.append((Column("engine", ColumnKind.TEXT), lambda place, run: run.engine))
    if len({run.host for run in found.runs}) > 1:
        columns.append((Column("host", ColumnKind.TEXT), lambda place, run: run.host))
    if any(run.commit for run in found.runs):
        columns.append((Column("commit", ColumnKind.TEXT), lambda place, run: commit_text(run)))
    if any(run.changed for run in found.runs):
        columns.append((Column("changed", ColumnKind.TEXT), lambda place, run: changed_text(run)))
    rows = [[cell(place, run) for _, cell in columns] for place, run in enumerate(found.runs, 1)]
    return Table(tuple(column for column, _ in columns), tuple(rows))


def _speed(run: TrendRun, metric: metrics.Metric) -> str:
    if run.baseline is None:
        return numbers.DASH
    ends = f"{metric.format(run.baseline.low)} {numbers.DASH} {metric.format(run.baseline.high)}"
    return f"{metric.format(run.baseline.mean)} ({ends})"


def _ratio_cells(one: RunRatio | None, found: Trend, run: TrendRun) -> tuple[str, str, str]:
    if one is None:
        return numbers.DASH, numbers.DASH, ""
    verdict = verdicts.losing(verdicts.marked(one.verdict), one.gives_up) if one.verdict else ""
    if one.effect is None:
        return numbers.DASH, numbers.DASH, verdict
    against = multiple_text(one.against_earlier) if one.against_earlier else numbers.DASH
    stands = "stands out" if run is found.runs[-1] else "stood out"
    remark = stands if _stands_out(one, found.margin) else ""
    return multiple_text(one.effect), against, ", ".join(filter(None, (verdict, remark)))


def _stands_out(one: RunRatio, margin: float) -> bool:
    ratio = one.against_earlier
    return ratio is not None and excludes_one(ratio) and not within(ratio, margin)


def _last_stands_out(found: Trend, one: VariantTrend) -> bool:
    last = found.runs[-1].ratio(one.variant)
    return last is not None and _stands_out(last, found.margin)


def _moved(one: VariantTrend) -> bool:
    return any(shift.movement is Movement.MOVED for shift in one.shifts)


def _names(variants: Iterator[VariantTrend]) -> str:
    return listed([one.variant for one in variants])


def _varied(log_sd: float | None) -> str:
    """A spread of logs as a share."""
    return numbers.rough_share_text(math.expm1(log_sd or 0.0))
