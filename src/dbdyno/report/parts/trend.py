"""One study over its runs: what may be said of each ratio, the runs, and what the figures rest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.analyse.compare import RUNS_LEAST, excludes_one
from dbdyno.analyse.intervals import within
from dbdyno.analyse.model import Role
from dbdyno.analyse.trend import Movement, Omission, RunRatio, Shift, Trend, TrendRun, VariantTrend
from dbdyno.records import metrics
from dbdyno.report.words import numbers, safe, verdicts
from dbdyno.report.words.numbers import multiple_text

OMITTED = {
    Omission.UNFINISHED: "{runs} not finished",
    Omission.CHANGED: "{runs} of a file of this name that asked something else",
    Omission.REFERENCE: "{runs} measured beside another, for a gate",
    Omission.SOAK: "{runs} that soaked it",
    Omission.WITHOUT_RATIO: "{runs} without a ratio that holds",
    Omission.OLDER: "{runs} older than --since",
    Omission.BEYOND_LIMIT: "{runs} beyond --limit",
}
SPEEDS_COMPARE_BADLY = (
    "Speeds of different days compare badly, because a host is never quite the same. Ratios compare better:"
    " within a run, baseline and variant shared each block."
)
STACKED_BELOW = 72
"""On a terminal with fewer columns each run has lines of its own."""
LONG = ("run", "engine", "host", "changed")
"""Heads of columns that hold text, whose lines may be broken."""
Cell = Callable[[int, TrendRun], str]


def title(found: Trend) -> str:
    """Which study, over how many runs."""
    return f"{found.title}: {numbers.plural(len(found.runs), 'run')}"


def headline(found: Trend) -> str:
    """What moved, in a sentence or two."""
    if names := _names(one for one in found.variants if _moved(one)):
        return f"Moved: {names}. Days changed as well, so a cause is not told."
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


def _shift_text(shift: Shift, found: Trend) -> str:
    before, after = shift.runs
    number = next(place for place, run in enumerate(found.runs, 1) if run.run == shift.first)
    what = f" ({_listed(shift.changed)} changed)" if shift.changed else ""
    head = f"From run {number} on{what}"
    if shift.ratio is None:
        return f"{head}: too few runs to say, {before} before and {after} after; it takes {RUNS_LEAST} each."
    ratio = f"{multiple_text(shift.ratio)}, {after} runs over {before}"
    if shift.movement is Movement.SAME:
        return f"{head}: unchanged within the margin of {numbers.share_text(found.margin)} ({ratio})."
    if shift.movement is Movement.OPEN:
        return f"{head}: {ratio}. More runs would tell whether it moved."
    if shift.changed:
        return f"{head} the ratio moved: {ratio}. Days changed as well, so the cause is not told."
    return f"{head} the ratio moved: {ratio}. Nothing known changed there but the days."


def run_heads(found: Trend) -> tuple[str, ...]:
    """Of the table of `run_rows`."""
    return tuple(head for head, _ in _columns(found))


def run_rows(found: Trend) -> list[tuple[str, ...]]:
    """The runs with their baseline's speed. What is the same for all of them stands in `shared`."""
    cells = [cell for _, cell in _columns(found)]
    return [tuple(cell(place, run) for cell in cells) for place, run in enumerate(found.runs, 1)]


def shared(found: Trend) -> str:
    """Engine and host of all runs, as far as they have one alone."""
    facts = [{run.engine for run in found.runs}, {run.host for run in found.runs}]
    return " · ".join(safe.clean(one.pop()) for one in facts if len(one) == 1)


RATIO_HEADS = ("#", "began", "variant / baseline", "to the runs before it", "says")


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
        " run's report. All else has Student's or Welch's intervals over runs, which hold together with a"
        f" confidence of {numbers.share_text(found.confidence)} on this page. An earlier run that stood out"
        " did so by itself: of many runs one does by chance."
    )
    yield from _beyond_blocks(found)
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
        f"Runs against blocks: over the last {most.runs} runs the ratio of {safe.clean(name)} varied"
        f" {numbers.times_text(most.ratio)} times as much as its blocks explain (F; by chance up to"
        f" {numbers.times_text(most.limit)} in 95 % of cases)"
    )
    yield f"{told}, so a single run's interval is too narrow." if most.shown else f"{told}."


def omitted(left_out: dict[Omission, int]) -> str:
    """How many runs are left out, and why."""
    return "; ".join(
        OMITTED[why].format(runs=numbers.plural(count, "run")) for why, count in left_out.items()
    )


def render(found: Trend, console: Console) -> None:
    """Prints what moved, the runs, and each variant in every run."""
    console.print(Text(safe.clean(title(found)), style="bold"))
    console.print(Text(headline(found), style="bold"))
    console.print()
    _show(run_heads(found), run_rows(found), console)
    if same := shared(found):
        console.print(Text(f"All: {same}", style="dim"))
    for one in found.variants:
        console.print()
        console.print(Text(safe.clean(one.variant) + role_text(one), style="bold"))
        for sentence in sentences(found, one):
            console.print(Text(sentence))
        _show(RATIO_HEADS, ratio_rows(found, one.variant), console)
    console.print()
    for note in notes(found):
        console.print(Text(note, style="dim"))


def role_text(one: VariantTrend) -> str:
    """What is special of a variant."""
    special = {
        Role.TWIN: " (the baseline again: its ratio is 1 but for noise)",
        Role.PLACEBO: " (a placebo: the baseline’s code at other addresses)",
    }
    return special.get(one.role, "")


def began(run: TrendRun) -> str:
    """When a run began, in UTC."""
    return f"{datetime.fromtimestamp(run.began_unix_s, UTC):%Y-%m-%d %H:%M}"


def named(run: TrendRun) -> str:
    """A run with its user's name and note."""
    return safe.clean("; ".join(filter(None, (run.run, run.name, run.note))))


def changed_text(run: TrendRun) -> str:
    """What changed since the run before it, and to what."""
    return safe.clean("; ".join(f"{one}: {run.circumstances[one]}" for one in run.changed))


def _columns(found: Trend) -> list[tuple[str, Cell]]:
    metric = metrics.find(found.metric)
    columns: list[tuple[str, Cell]] = [
        ("#", lambda place, run: str(place)),
        ("began", lambda place, run: began(run)),
        ("run", lambda place, run: named(run)),
        (f"baseline, {metric.unit or metric.title}", lambda place, run: _speed(run, metric)),
    ]
    if len({run.engine for run in found.runs}) > 1:
        columns.append(("engine", lambda place, run: safe.clean(run.engine)))
    if len({run.host for run in found.runs}) > 1:
        columns.append(("host", lambda place, run: safe.clean(run.host)))
    if any(run.changed for run in found.runs):
        columns.append(("changed", lambda place, run: changed_text(run)))
    return columns


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
    return ", ".join(safe.clean(one.variant) for one in variants)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _varied(log_sd: float | None) -> str:
    """A spread of logs as a share."""
    return numbers.rough_share_text(math.expm1(log_sd or 0.0))


def _show(heads: Sequence[str], lines: Sequence[Sequence[str]], console: Console) -> None:
    if console.width >= STACKED_BELOW:
        console.print(_table(heads, lines))
        return
    for number, day, *cells in lines:
        console.print(Text(f"{number}  {day}"))
        for head, cell in zip(heads[2:], cells, strict=True):
            if cell:
                console.print(Padding(Text(f"{head}: {cell}"), (0, 0, 0, 3)))


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, overflow="fold", justify="left" if place else "right")
    for line in lines:
        table.add_row(*map(Text, line))
    return table
