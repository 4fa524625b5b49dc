"""The verdicts of a run: each variant's ratio, its verdict, and what it costs.

Every metric beside the response that a variant was compared in: for those who ask what a gain costs.

What the instrument says of itself: its twins, the smallest effect that blocks could show, its spreads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.analyse.analysis import Basis, first_blocks
from dbdyno.analyse.estimate import pairs, with_copies
from dbdyno.analyse.floor import components, floor
from dbdyno.analyse.found import Components, Floor, SecondResponse
from dbdyno.analyse.model import AaCheck, Analysis, GuardResult, Kept, Ratio, Role, VariantResult, Verdict
from dbdyno.analyse.second import aa_check, second_response
from dbdyno.records import metrics
from dbdyno.records.metrics import Metric
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Element,
    Figure,
    Fitting,
    From,
    Mark,
    Notes,
    Row,
    RowLook,
    Section,
    Table,
    TableCell,
    Tone,
    Words,
)
from dbdyno.report.words import answer, method, naming, noise, numbers, remarks
from dbdyno.report.words.verdicts import ranked_variants


def find_aa(basis: Basis) -> AaCheck | None:
    """The instrument against itself, where the study has a twin of its baseline."""
    twins = [each for each in basis.trials if each.role is Role.TWIN]
    if not twins:
        return None
    response = basis.study.goal.response
    log_ratios = [ratio for twin in twins for ratio in pairs(twin, basis.trials[0], response)]
    return aa_check(response, log_ratios, basis.confidence)


def find_floor(basis: Basis) -> Floor | None:
    """The smallest effect that the blocks could show."""
    return floor(basis.trials, basis.method)


def find_components(basis: Basis) -> Components | None:
    """How much of the spread lies within trials and between them."""
    return components(first_blocks(basis.trials))


def find_second(basis: Basis) -> SecondResponse | None:
    """What a transaction costs the server's CPUs."""
    return second_response(basis.trials, with_copies(basis.trials), basis.method)


COSTS = {
    "p99_ms": ("p99", "p99"),
    "server_cpu_us_per_op": ("server CPU/op", "CPU"),
    "driver_cpu_us_per_op": ("driver CPU/op", "driver"),
}
"""The heads of the costs that stand beside a verdict: with intervals, and where there is no room for them."""
KINDS = {"variant": ColumnKind.NAME, "interval": ColumnKind.PHRASE, "verdict": ColumnKind.TEXT}


def sections(analysis: Analysis) -> Iterator[Section]:
    """The effects as a figure, and the table of verdicts with what must be known of it."""
    yield Section(
        "Effects",
        (Figure("dbdyno.report.figures.charts:effects", (analysis,)),),
        aside=_effects_text(analysis),
        detail=Detail.PAGE,
    )
    yield Section("Verdicts", (*_verdicts(analysis),))


def _effects_text(analysis: Analysis) -> str:
    run, shared = analysis.run, _shared(analysis)
    if run.of_logs is None:
        drawn = "Dot and line: geometric mean over blocks and its interval. Ticks: single blocks."
    else:
        ticks = " Ticks: single pairs." if run.of_logs.paired else ""
        drawn = f"Dot and line: the ratio and its interval.{ticks}"
    stands = f" … stands for {shared}" if shared else ""
    return f"{drawn} Band: the margin, where a difference counts as no effect.{stands}"


def _shared(analysis: Analysis) -> str:
    """What the names on an axis all begin with, which stands there as `…`."""
    name = naming.called(analysis)
    return naming.shared_beginning([name[one.name] for one in analysis.candidates])


def _verdicts(analysis: Analysis) -> Iterator[Element]:
    of_noise = (noise.adjusted_text(analysis), noise.floor_text(analysis), noise.second_text(analysis))
    notes = tuple(filter(None, (*of_noise, method.layout_text(analysis))))
    everything = (
        f"{method.ratio_text_of(analysis)} {method.intervals_text(analysis)}",
        method.aa_text(analysis),
        *notes,
        method.calibration_text(analysis),
        *answer.notes(analysis),
    )
    yield From(
        Detail.PAGE,
        (_on_page(analysis), Notes((PAGE_NOTE, *filter(None, (method.aa_text(analysis),)), *notes))),
        (Fitting((*_layouts(analysis),)), Notes(tuple(filter(None, everything)))),
    )


COSTS_NOTE = "p99 and CPU: ratios of cost, each interval by itself; ~: it may be 1."
PAGE_NOTE = (
    "Ratios are variant / baseline. Small: the interval. p99 and CPU are what it cost, each interval by"
    " itself."
)


def _costs(analysis: Analysis) -> tuple[str, ...]:
    return tuple(name for name in COSTS if any(variant.cost(name) for variant in analysis.variants))


FAILURES = {metrics.FAILED_SHARE: "failed", metrics.RETRIES: "retried"}
"""What of a load's errors stands beside a verdict, where variants differ in it."""
FAILURES_APART = 1e-3


def failures(analysis: Analysis) -> tuple[str, ...]:
    """The kinds of failures in which a variant differs from the baseline by more than one in a thousand."""

    def apart(name: str) -> bool:
        base = _mean_of(analysis.baseline, name) or 0.0
        seen = (_mean_of(one, name) for one in analysis.variants if one.role is not Role.BASELINE)
        return any(abs(mean - base) > FAILURES_APART for mean in seen if mean is not None)

    return tuple(name for name in FAILURES if apart(name))


def _mean_of(variant: VariantResult, name: str) -> float | None:
    found = variant.summary(name)
    return None if found is None else found.mean


def failure_text(variant: VariantResult, name: str) -> str:
    """A share of transactions that failed, or retries per transaction, as a percentage of transactions."""
    mean = _mean_of(variant, name)
    if mean is None:
        return numbers.DASH if variant.response is None else "0 %"
    return numbers.coarse_text(mean) if mean else "0 %"


def _layouts(analysis: Analysis) -> Iterator[Table]:
    """The table with all costs, then with fewer. The last is broken into lines where none has room."""
    costs = _costs(analysis)
    called = {one.name: one.name for one in analysis.variants}
    yield layout(analysis, costs, called)
    yield layout(analysis, costs[:2], called)
    yield layout(analysis, costs, called, intervals=False)
    yield layout(analysis, costs[:2], called, intervals=False)
    yield layout(analysis, (), called)
    yield layout(analysis, (), called, response=False)
    yield layout(analysis, (), called)


NOT_MEASURED = (Verdict.BROKEN, Verdict.BLOCKED, Verdict.FAILED, Verdict.INERT)


def layout(
    analysis: Analysis,
    costs: tuple[str, ...],
    called: Mapping[str, str],
    intervals: bool = True,
    response: bool = True,
    brief: bool = False,
) -> Table:
    """The table of those variants that are `called` something, in that order, with some costs beside the
    verdict. In `brief` a cost that may be 1 is a dash."""
    intervals = intervals and not brief
    metric = metrics.find(analysis.method.response)
    heads = (
        "variant",
        *([metric.unit or metric.title] if response else []),
        "ratio",
        "interval",
        "verdict",
        *(FAILURES[name] for name in failures(analysis)),
        *(COSTS[cost][0 if intervals else 1] for cost in costs),
    )
    rows = tuple(
        (
            called[variant.name],
            *([_response(variant)] if response else []),
            *_ratio(variant),
            verdict(variant),
            *(failure_text(variant, name) for name in failures(analysis)),
            *(_cost(_told(variant.cost(cost), brief), intervals) for cost in costs),
        )
        for variant in (remarks.variant_of(analysis, name) for name in called)
    )
    columns = tuple(Column(head, KINDS.get(head, ColumnKind.FIGURE)) for head in heads)
    return Table(columns, rows, dense=True, note=COSTS_NOTE if costs else "")


def _told(ratio: Ratio | None, brief: bool) -> Ratio | None:
    return None if ratio is None or (brief and not numbers.differs(ratio)) else ratio


def _response(variant: VariantResult) -> str:
    found = variant.response
    return numbers.value_text(found.metric, found.mean) if found else numbers.DASH


def _ratio(variant: VariantResult) -> tuple[Words, Words]:
    """A ratio and its interval; those of a variant whose speed does not count stand back."""
    if variant.effect is None:
        return numbers.DASH, numbers.DASH
    told = numbers.ratio_text(variant.effect.ratio), numbers.interval_text(variant.effect)
    if variant.verdict is Verdict.BROKEN:
        return Mark(told[0], Tone.QUIET), Mark(told[1], Tone.QUIET)
    return told


def verdict(variant: VariantResult) -> Mark:
    """A variant's verdict in its look."""
    return Mark(remarks.verdict_text(variant), variant.verdict)


def _cost(ratio: Ratio | None, interval: bool) -> Words:
    """A cost's ratio; `~` marks one that cannot be told from 1, for readers without colour too."""
    if ratio is None:
        return numbers.DASH
    mark = "" if numbers.differs(ratio) else "~"
    told = mark + numbers.cost_text(ratio.ratio)
    if interval and ratio.low is not None and ratio.high is not None:
        told += f" ({numbers.cost_text(ratio.low)}{numbers.DASH}{numbers.cost_text(ratio.high)})"
    return Mark(told, Tone.QUIET) if mark else told


def _on_page(analysis: Analysis) -> Table:
    """The same with what is said of each variant below its verdict, because a page has the room."""
    unit = metrics.find(analysis.method.response).unit
    response = f"{naming.metric_title(analysis)}, {unit}".strip(", ")
    columns = (
        *(
            Column("variant", ColumnKind.NAME),
            Column(response),
            Column("ratio"),
            Column("verdict", ColumnKind.TEXT),
        ),
        *(Column(FAILURES[name]) for name in failures(analysis)),
        *(Column(head) for head, _ in COSTS.values()),
    )
    shown = [analysis.baseline, *ranked_variants(analysis)]
    name = naming.told_apart(analysis)
    rows = tuple(_row(variant, analysis, name[variant.name]) for variant in shown)
    return Table(columns, rows, looks=looks(shown))


def looks(shown: list[VariantResult]) -> Mapping[int, RowLook]:
    """The baseline's row, and those of variants whose speed does not count."""
    voided = {place: RowLook.VOID for place, one in enumerate(shown) if one.verdict is Verdict.BROKEN}
    return voided | {place: RowLook.BASELINE for place, one in enumerate(shown) if one.role is Role.BASELINE}


def _row(variant: VariantResult, analysis: Analysis, name: str) -> Row:
    found = variant.response
    below = (variant.name if name != variant.name else "", remarks.dropped_text(variant))
    remark = remarks.remark(variant, analysis)
    told = remark if variant.cause or variant.verdict is not Verdict.BROKEN else ""
    return (
        TableCell(name, tuple(filter(None, below))),
        TableCell(_response(variant), (numbers.plural(found.trials, "trial"),)) if found else numbers.DASH,
        ratio_cell(variant.effect),
        TableCell(verdict(variant), (*filter(None, (told,)), *map(_guard, variant.guards))),
        *(failure_text(variant, name) for name in failures(analysis)),
        *(ratio_cell(variant.cost(cost)) for cost in COSTS),
    )


def ratio_cell(ratio: Ratio | None) -> Words | TableCell:
    """A ratio above its interval."""
    if ratio is None:
        return Mark(numbers.DASH, Tone.QUIET)
    return TableCell(numbers.ratio_text(ratio.ratio), (numbers.interval_text(ratio),))


def _guard(guard: GuardResult) -> Words:
    state = Mark(guard.state.value, Tone.BAD) if guard.state is Kept.BROKEN else guard.state.value
    return (f"{remarks.guard_text(guard)}: ", state)


def costs_sections(analysis: Analysis) -> Iterator[Section]:
    """A row for each variant, a column for each metric."""
    names = dict.fromkeys(ratio.metric for variant in analysis.variants for ratio in variant.costs)
    if not names:
        return
    costs = [metrics.find(name) for name in names]
    heads = (Column(f"{cost.title}, {cost.unit}".strip(", ")) for cost in costs)
    shown = [variant for variant in (analysis.baseline, *ranked_variants(analysis)) if variant.summaries]
    name = naming.told_apart(analysis)
    rows: tuple[Row, ...] = tuple(
        (name[variant.name], *(_cell(variant, cost) for cost in costs)) for variant in shown
    )
    made = Table((Column("variant", ColumnKind.NAME), *heads), rows, dense=True, looks=looks(shown))
    note = Notes(("Mean over trials; small: ratio to the baseline and its interval, each by itself.",))
    yield Section("Costs", (made, note), detail=Detail.PAGE)


def _cell(variant: VariantResult, cost: Metric) -> TableCell:
    summary, ratio = variant.summary(cost.name), variant.cost(cost.name)
    below = (numbers.ratio_text(ratio.ratio), numbers.interval_text(ratio)) if ratio else ()
    return TableCell(cost.format(summary.mean) if summary else numbers.DASH, below)
