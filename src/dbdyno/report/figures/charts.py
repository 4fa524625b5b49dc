"""The figures of the HTML report, as Vega-Lite specifications made with Altair.

A gate's ratio above what it is judged by, as bars on one log axis. A page draws them without a script, so
that it stays small enough to hang on a merge request.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from dbdyno.analyse.gate import Gate
from dbdyno.analyse.model import Analysis, BlockRatio, Role, TrialResult, VariantResult
from dbdyno.frozen import level_shown
from dbdyno.records import metrics
from dbdyno.report.figures.vega import (
    COUNT_LABELS,
    LINES,
    REFERENCE,
    Layer,
    Rows,
    Spec,
    columns_for,
    data,
    legend_of_lines,
    margin_band,
    ratio_axis,
    ratio_domain,
    ratio_ticks,
    spec,
    tooltip,
)
from dbdyno.report.words import naming, numbers, remarks, safe, verdicts
from dbdyno.report.words.verdicts import ranked_variants


@dataclass(frozen=True)
class Bar:
    """A stretch of the axis, its ends in percent from the left. `dot` is the ratio itself, `marks` are those
    of single blocks; `kind` is a class of the style sheet."""

    name: str
    told: str
    kind: str
    low: float
    high: float
    dot: float | None = None
    marks: tuple[float, ...] = ()


@dataclass(frozen=True)
class BarFigure:
    """The bars, and the axis' ticks as places and texts. `one` is the place of the ratio 1."""

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float


def figure(found: Gate) -> BarFigure | None:
    """None where the run has no ratio to its reference."""
    effect, floor, margin = found.result.effect, found.floor, found.method.margin
    if effect is None:
        return None
    blocks = [block.ratio for block in found.result.block_ratios]
    ends = [effect.ratio, effect.low or effect.ratio, effect.high or effect.ratio]
    around = [1.0 / floor.ratio, floor.ratio] if floor else []
    left, right = ratio_domain([*ends, *blocks, *around], margin)

    def place(ratio: float) -> float:
        share = math.log(min(max(ratio, left), right) / left) / math.log(right / left)
        return round(100.0 * share, 2)

    def around_one(name: str, kind: str, ratio: float) -> Bar:
        told = f"{numbers.ratio_text(1.0 / ratio)} {numbers.DASH} {numbers.ratio_text(ratio)}"
        return Bar(name, told, kind, place(1.0 / ratio), place(ratio))

    ratio = Bar(
        name="run / reference",
        told=numbers.effect_text(effect),
        kind=verdicts.slug(found.result.verdict) if found.result.verdict else "none",
        low=place(ends[1]),
        high=place(ends[2]),
        dot=place(effect.ratio),
        marks=tuple(map(place, blocks)),
    )
    floors = (around_one("two equal runs", "floor", floor.ratio),) if floor else ()
    return BarFigure(
        bars=(ratio, around_one("the margin", "margin", 1.0 + margin), *floors),
        ticks=tuple((place(tick), f"{tick:.4g}") for tick in ratio_ticks(left, right)),
        one=place(1.0),
    )


TWIN = "A/A"
MARKS: dict[str, tuple[str, str]] = {
    **{verdict.value: (verdicts.colour(verdict), look.shape) for verdict, look in verdicts.LOOKS.items()},
    TWIN: (REFERENCE, "diamond"),
    Role.PLACEBO.value: (REFERENCE, "circle"),
}
"""Colour and shape by verdict: whoever cannot tell the colours can tell the shapes."""
PART_COLOURS = {
    "in front, user": "var(--line-6)",
    "in front, kernel": "var(--line-7)",
    "in front, waits for a CPU": "var(--faint)",
    "server, user": "var(--line-0)",
    "server, kernel": "var(--line-5)",
    "server waits for a CPU": "var(--line-1)",
    "driver": "var(--line-2)",
    "driver waits for a CPU": "var(--line-4)",
    "the client pauses (think and keying times)": "var(--line-3)",
    "the rest": "var(--rule)",
}
REQUEST_COLOURS = {
    "application": "var(--line-6)",
    "database": "var(--line-0)",
    "waiting": "var(--rule)",
}
ROW, LINE = 26, 14
SMALL = 286
"""How wide one of many small figures is."""
NAME_COLUMNS = 30
LOG_FROM = 4
PERCENTILE_LABELS = "format(100 - 100 / datum.value, '~g') + ' %'"


def effects(analysis: Analysis) -> Spec | None:
    """Dot and interval per variant on a log axis, each block's ratio behind it, the margin as a band."""
    shown = [variant for variant in ranked_variants(analysis) if variant.effect is not None]
    if not shown:
        return None
    label = labels(analysis)
    name = naming.called(analysis)
    rows = [
        _effect_row(variant, analysis) | {"variant": name[variant.name], "label": label[variant.name]}
        for variant in shown
    ]
    blocks = [
        _block_row(pair) | {"variant": name[variant.name], "label": label[variant.name]}
        for variant in shown
        for pair in variant.block_ratios
    ]
    ends = [row[end] for row in rows for end in ("low", "high")]
    ratios = [*ends, *(row["ratio"] for row in blocks)]
    x = alt.X("ratio:Q", **ratio_axis(ratios, analysis.method.margin, _ratio_title(analysis)))
    names = [variant.name for variant in shown]
    y = _variant_axis(names, analysis)
    ticks = _block_ticks(blocks, naming.group_text(analysis.run), x, y)
    layers = (*margin_band(analysis.method.margin), ticks, *_dots(rows, x, y))
    return spec(
        alt.layer(*layers).properties(
            width="container",
            height=_height(names, analysis),
            description="Ratio of each variant to the baseline, with its interval",
        )
    )


def _block_ticks(rows: Rows, group: str, x: alt.X, y: alt.Y) -> Layer:
    tip = tooltip(variant="variant", block=group, trial="trial", text=f"ratio in this {group}")
    ticks = alt.Chart(data(rows)).mark_tick(thickness=1.2, size=11, color="var(--faint)", opacity=0.9)
    return ticks.encode(x=x, y=y, tooltip=tip)


def by_verdict(rows: Rows) -> tuple[alt.Color, alt.Shape]:
    """The channels that tell the verdicts of some rows."""
    present = [word for word in MARKS if any(row["verdict"] == word for row in rows)]
    colours = alt.Scale(domain=present, range=[MARKS[word][0] for word in present])
    shapes = alt.Scale(domain=present, range=[MARKS[word][1] for word in present])
    return (
        alt.Color("verdict:N", scale=colours, legend=None),
        alt.Shape("verdict:N", scale=shapes, legend=None),
    )


def _dots(rows: Rows, x: alt.X, y: alt.Y) -> tuple[Layer, Layer]:
    colour, shape = by_verdict(rows)
    tip = tooltip(
        variant="variant",
        text="ratio",
        interval="interval",
        verdict="verdict",
        blocks="blocks",
        remark="note",
    )
    base = alt.Chart(data(rows)).encode(y=y, color=colour, tooltip=tip)
    interval = base.mark_rule(strokeWidth=2.4, strokeCap="round").encode(x="low:Q", x2="high:Q")
    dot = base.mark_point(size=90, filled=True, opacity=1, stroke="var(--paper)", strokeWidth=1.4)
    return interval, dot.encode(x=x, shape=shape)


def trials(analysis: Analysis) -> Spec | None:
    """Each measured trial as a point: its response, by variant, the blocks one under the other within a row
    where there are any.
    """
    measured = [trial for trial in analysis.trials if trial.response is not None]
    if not measured:
        return None
    present = {trial.record.variant for trial in measured}
    names = [
        variant.name for variant in (analysis.baseline, *ranked_variants(analysis)) if variant.name in present
    ]
    doubtful = alt.datum.doubtful
    label = labels(analysis)
    name = naming.called(analysis)
    rows = [
        _trial_row(trial, analysis)
        | {"variant": name[trial.record.variant], "label": label[trial.record.variant]}
        for trial in measured
    ]
    order = {} if analysis.run.of_logs else {"order": "order in block"}
    tip = tooltip(
        variant="variant", trial="trial", **_group(analysis), **order, text="response", p99="p99",
        cpu="server CPU", steady="steady from", evidence="read back", checks="checks", warnings="warnings",
    )  # fmt: skip
    rows_within = {"yOffset": alt.YOffset("block:O")} if _group(analysis) else {}
    return spec(
        alt.Chart(data(rows))
        .mark_point(size=46, filled=True, opacity=0.85)
        .encode(
            x=_response_axis(measured, analysis),
            y=_variant_axis(names, analysis),
            **rows_within,
            color=alt.condition(doubtful, alt.value("var(--warn)"), alt.value("var(--point)")),
            shape=alt.condition(doubtful, alt.value("triangle-up"), alt.value("circle")),
            tooltip=tip,
        )
        .properties(width="container", height=_height(names, analysis), description="Every trial's response")
    )


def _group(analysis: Analysis) -> dict[str, str]:
    """The field that tells which trials belong together, with its title; empty where none do."""
    group = naming.group_text(analysis.run)
    return {"block": group} if group else {}


def _response_axis(measured: Sequence[TrialResult], analysis: Analysis) -> alt.X:
    """Logarithmic once the trials differ so much that the slow ones would lie on each other."""
    metric = metrics.find(analysis.method.response)
    values = [trial.response for trial in measured if trial.response is not None]
    log = max(values) > LOG_FROM * min(values)
    scale = alt.Scale(type="log", nice=False, padding=12) if log else alt.Scale(zero=False, padding=12)
    title = f"{metric.title}, {metric.unit}" + (" (log scale)" if log else "")
    return alt.X(
        "response:Q",
        scale=scale,
        axis=alt.Axis(title=title, format="~s", tickCount=8, labelOverlap="greedy"),
    )


def latency(analysis: Analysis) -> Spec | None:
    """Latency at percentiles up to 99.99, one line per variant, both axes logarithmic."""
    shown = [variant for variant in analysis.variants if variant.latency and variant.role is not Role.TWIN]
    if not shown:
        return None
    name = naming.called(analysis)
    rows = [
        {
            "variant": name[variant.name],
            "times": 1.0 / point.above,
            "latency": max(point.latency_ms, 0.001),
            "at": numbers.percentile_text(point.above),
            "text": f"{metrics.number_text(point.latency_ms)} ms",
        }
        for variant in shown
        for point in variant.latency
    ]
    lifted = alt.selection_point(fields=["variant"], on="pointerover", nearest=True, clear="pointerout")
    base = alt.Chart(data(rows)).encode(
        x=alt.X(
            "times:Q",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(
                values=[2, 10, 100, 1000, 10000],
                labelExpr=PERCENTILE_LABELS,
                title="percentile",
                labelFlush=True,
            ),
        ),
        y=alt.Y(
            "latency:Q",
            scale=alt.Scale(type="log", nice=False, padding=8),
            axis=alt.Axis(title="latency, ms (log scale)", format="~g", tickCount=6),
        ),
        color=_variant_colours(shown, name),
        tooltip=tooltip(variant="variant", at="percentile", text="latency"),
    )
    lines = base.mark_line(interpolate="monotone", strokeWidth=1.8).encode(
        opacity=alt.condition(lifted, alt.value(1.0), alt.value(0.18))
    )
    points = base.mark_circle(size=30).encode(opacity=alt.value(0)).add_params(lifted)
    return spec((lines + points).properties(width="container", height=340, description="Latency percentiles"))


def _variant_colours(shown: Sequence[VariantResult], called: Mapping[str, str]) -> alt.Color:
    """A colour and a legend for each of a few variants; of many, their verdicts' colours, and names on
    pointing.
    """
    names = [called[variant.name] for variant in shown]
    if len(names) > 1 + len(LINES):
        colours = [MARKS[variant.verdict.value][0] if variant.verdict else REFERENCE for variant in shown]
        return alt.Color("variant:N", scale=alt.Scale(domain=names, range=colours), legend=None)
    scale = alt.Scale(domain=names, range=[REFERENCE, *LINES][: len(names)])
    return alt.Color("variant:N", scale=scale, legend=legend_of_lines(names, "bottom"))


def series(analysis: Analysis) -> Spec | None:
    """Operations per second, a small figure per variant with a line per trial; the warm-up is shaded."""
    name = naming.called(analysis)
    rows: Rows = [
        {
            "variant": name[trial.record.variant],
            "block": trial.record.block + 1,
            "trial": trial.record.trial,
            "second": list(trial.series.seconds),
            "operations": [float(f"{value:.5g}") for value in trial.series.operations_per_s],
        }
        for trial in analysis.trials
        if trial.series is not None
    ]
    if not rows:
        return None
    names = [*name.values()]
    header = alt.Header(labelLimit=SMALL, labelAnchor="start", labelPadding=4)
    first = min(row["second"][0] for row in rows)
    figure = alt.layer(*([_warmup(first)] if first < 0 else []), _trial_lines(analysis))
    return spec(
        figure.properties(width=SMALL, height=84, description="Operations per second of every trial")
        .facet(
            facet=alt.Facet("variant:N", sort=names, title=None, header=header),
            columns=3,
            spacing={"row": 18, "column": 24},
            data=data(rows),
        )
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
        .transform_flatten(["second", "operations"])
    )


def _warmup(first: int) -> Layer:
    return alt.Chart().mark_rect(color="var(--band)", aria=False).encode(x=alt.datum(first), x2=alt.datum(0))


def _trial_lines(analysis: Analysis) -> Layer:
    return (
        alt.Chart()
        .mark_line(strokeWidth=1.1, opacity=0.75, color="var(--point)")
        .encode(
            x=alt.X(
                "second:Q", scale=alt.Scale(nice=False), axis=alt.Axis(title=None, tickCount=5, grid=False)
            ),
            y=alt.Y(
                "operations:Q",
                scale=alt.Scale(zero=True),
                axis=alt.Axis(title=None, tickCount=3, format="~s", labelExpr=COUNT_LABELS),
            ),
            detail="trial:N",
            tooltip=tooltip(variant="variant", **_group(analysis), trial="trial"),
        )
    )


WORDS_ROOM = 20


def factors_of_gap(bars: Rows, title: str) -> Spec:
    """A bar from 1 for each part of a gap and for the whole, on a log axis, with its interval as a whisker. A
    row has a `step`, its `ratio`, the `low` and `high` end of its interval, its `kind`, and how it is
    `told`."""
    steps = [bar["step"] for bar in bars]
    rows = [bar | {"one": 1.0, "end": max(1.0, bar["ratio"], bar["high"])} for bar in bars]
    ends = [bar[name] for bar in rows for name in ("low", "high", "ratio")]
    y = alt.Y("step:N", sort=steps, title=None, axis=alt.Axis(labelLimit=320, domain=False, ticks=False))
    x = alt.X("one:Q", **ratio_axis(ends, 0.0, title))
    colours = alt.Scale(
        domain=["helps", "hurts", "undecided", "total"],
        range=["var(--faster)", "var(--slower)", "var(--inconclusive)", "var(--faint)"],
    )
    base = alt.Chart(data(rows)).encode(y=y)
    body = base.mark_bar(height=alt.RelativeBandSize(0.6), opacity=0.75).encode(
        x=x,
        x2="ratio:Q",
        color=alt.Color("kind:N", legend=None, scale=colours),
        tooltip=tooltip(step="part", told="ratio"),
    )
    whisker = base.mark_rule(strokeWidth=1.6, color=REFERENCE).encode(x=alt.X("low:Q"), x2="high:Q")
    caps = [
        base.mark_tick(thickness=1.6, size=9, color=REFERENCE).encode(x=alt.X(f"{end}:Q"))
        for end in ("low", "high")
    ]
    line = alt.Chart(data([{"one": 1}])).mark_rule(color=REFERENCE, strokeWidth=1).encode(x="one:Q")
    words = base.mark_text(align="left", dx=8, color=REFERENCE).encode(x=alt.X("end:Q"), text="told:N")
    made = spec(
        alt.layer(body, line, whisker, *caps, words).properties(
            width="container",
            height=ROW * len(bars),
            description="The gap: a bar from 1 for each part of it, with its interval",
        )
    )
    # Letters are wider than Vega believes, so there is some room behind the last ones.
    return made | {"padding": {"left": 5, "top": 5, "bottom": 5, "right": WORDS_ROOM}}


Parts = Sequence[tuple[str, Sequence[tuple[str, float]]]]
"""Of each variant, the parts of a time in microseconds by their words."""


def split(parts: Parts) -> Spec:
    """A stacked bar per variant: where the microseconds of one operation went."""
    return _stacked(parts, PART_COLOURS, "The time of an operation, a stacked bar per variant")


def request(parts: Parts) -> Spec:
    """The same of an operation that passes through an application."""
    return _stacked(parts, REQUEST_COLOURS, "The time of a request, a stacked bar per variant")


def _stacked(bars: Parts, colours: Mapping[str, str], description: str) -> Spec:
    """A stacked bar per variant, of parts in microseconds per operation."""
    rows: Rows = [
        {
            "variant": naming.wrapped(safe.clean(variant), NAME_COLUMNS),
            "part": part,
            "order": order,
            "us": max(mean, 0.0),
            "told": f"{metrics.number_text(mean)} us",
        }
        for variant, parts in bars
        for order, (part, mean) in enumerate(parts)
    ]
    names = list(dict.fromkeys(row["variant"] for row in rows))
    present = [word for word in colours if any(row["part"] == word for row in rows)]
    scale = alt.Scale(domain=present, range=[colours[word] for word in present])
    y_axis = alt.Axis(labelExpr="split(datum.label, '\\n')", labelLimit=320, domain=False, ticks=False)
    chart = alt.Chart(data(rows)).mark_bar(height=alt.RelativeBandSize(0.66))
    return spec(
        chart.encode(
            x=alt.X(
                "us:Q", stack="zero", axis=alt.Axis(title="us per operation", format=",.4~r", tickCount=8)
            ),
            y=alt.Y("variant:N", sort=names, title=None, axis=y_axis),
            color=alt.Color(
                "part:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=_columns(4))
            ),
            order=alt.Order("order:Q"),
            tooltip=tooltip(variant="variant", part="part", told="per operation"),
        ).properties(
            width="container",
            height=_rows_height(names),
            description=description,
        )
    )


def unjudged(role: Role) -> str:
    """The mark of a variant that has no verdict."""
    return role.value if role is Role.PLACEBO else TWIN


def _effect_row(variant: VariantResult, analysis: Analysis) -> dict[str, Any]:
    effect = variant.effect
    assert effect is not None
    return {
        "ratio": effect.ratio,
        "low": effect.ratio if effect.low is None else effect.low,
        "high": effect.ratio if effect.high is None else effect.high,
        "text": numbers.ratio_text(effect.ratio),
        "interval": numbers.interval_text(effect),
        "verdict": variant.verdict.value if variant.verdict else unjudged(variant.role),
        "blocks": str(effect.pairs),
        "remark": remarks.remark(variant, analysis),
    }


def _block_row(pair: BlockRatio) -> dict[str, Any]:
    return {
        "block": pair.block + 1,
        "trial": pair.trial,
        "ratio": pair.ratio,
        "text": numbers.ratio_text(pair.ratio),
    }


def _trial_row(trial: TrialResult, analysis: Analysis) -> dict[str, Any]:
    record, metric = trial.record, metrics.find(analysis.method.response)
    assert trial.response is not None
    return {
        "trial": record.trial,
        "block": record.block + 1,
        "order": record.position + 1,
        "response": trial.response,
        "text": f"{metric.format(trial.response)} {metric.unit}".strip(),
        "p99": _reading("p99_ms", trial),
        "cpu": _reading("server_cpu_us_per_op", trial),
        "steady": f"second {trial.steady.settled_at}" if trial.steady else "",
        "evidence": "; ".join(
            f"{evidence.factor} = {level_shown(evidence.effective.value)}"
            for evidence in record.evidence
            if evidence.effective
        ),
        "checks": "; ".join(
            f"{check.name} {'holds' if check.holds else 'violated'}" for check in record.checks
        ),
        "warnings": "; ".join(f"{warning.value}: {text}" for warning, text in trial.warnings.items()),
        "doubtful": bool(trial.warnings),
    }


def _reading(name: str, trial: TrialResult) -> str:
    metric = metrics.find(name)
    value = metric.read(trial.record)
    return "" if value is None else f"{metric.format(value)} {metric.unit}"


def labels(analysis: Analysis) -> dict[str, str]:
    """Each variant's name as an axis shows it: on several lines if need be, without what all begin with."""
    name = naming.called(analysis)
    names = [name[variant.name] for variant in analysis.variants]
    shared = naming.shared_beginning([name[variant.name] for variant in analysis.candidates])
    shorter = [f"…{name[len(shared) :]}" if shared and name.startswith(shared) else name for name in names]
    return {
        variant.name: naming.wrapped(name, NAME_COLUMNS, indent="")
        for variant, name in zip(analysis.variants, shorter, strict=True)
    }


def _variant_axis(names: Iterable[str], analysis: Analysis) -> alt.Y:
    shown = labels(analysis)
    return alt.Y(
        "label:N",
        sort=[shown[name] for name in names],
        axis=alt.Axis(title=None, labelLimit=260, labelExpr="split(datum.value, '\\n')", grid=True),
    )


def _height(names: Sequence[str], analysis: Analysis) -> int:
    """Room for a row per name. Vega-Lite's own step would do, but it complains of it beside a fitted
    width.
    """
    return _rows_height([labels(analysis)[name] for name in names])


def _rows_height(names: Sequence[str]) -> int:
    """All rows are as high as the highest needs to be."""
    return len(names) * (ROW + LINE * max(name.count("\n") for name in names))


def _ratio_title(analysis: Analysis) -> str:
    metric = metrics.find(analysis.method.response)
    better = "better →" if analysis.method.higher_is_better else "← better"
    return f"{metric.title}: variant / baseline (log scale) · {better}"


def frontier(factor: str, names: Sequence[str], points: Rows) -> Spec:
    """The measured points of each curve with their intervals: speed, on a log axis, over recall."""
    colours = alt.Scale(domain=names, range=[LINES[index % len(LINES)] for index in range(len(names))])
    # Curves differ at the end of their names, so none is cut; the limit 0 is Vega's word for no limit.
    columns = columns_for(names, 2)
    legend = alt.Legend(title=None, orient="bottom", columns=columns, labelLimit=0) if names[1:] else None
    tip = tooltip(curve="curve", effort=factor, told_recall="recall", told_speed="queries per second",
                  trials="trials")  # fmt: skip
    base = alt.Chart(data(points)).encode(
        x=alt.X(
            "recall:Q",
            scale=alt.Scale(zero=False, nice=False, padding=24),
            axis=alt.Axis(title="recall", format=".2~f", tickCount=8),
        ),
        color=alt.Color("curve:N", scale=colours, legend=legend),
        tooltip=tip,
    )
    speed = alt.Y(
        "speed:Q",
        scale=alt.Scale(type="log", nice=False, padding=14),
        axis=alt.Axis(title="queries per second", format=",.4~r", tickCount=6),
    )
    layers = (
        base.mark_line(strokeWidth=2).encode(y=speed, order="recall:Q"),
        base.mark_rule(strokeWidth=1.2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(size=55, filled=True, opacity=1).encode(y=speed),
        base.mark_text(dy=-11, fontSize=11).encode(y=speed, text="effort:N"),
    )
    about = "Queries per second over recall, one line per variant"
    return spec(alt.layer(*layers).properties(width="container", height=340, description=about))


def _columns(most: int) -> alt.ExprRef:
    """The columns of a legend: one where the page is narrow."""
    return alt.ExprRef(f"width < 480 ? 1 : {most}")
