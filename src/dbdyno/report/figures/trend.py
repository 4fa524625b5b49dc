"""The figures of a trend: each variant's ratio from run to run, and the baseline's speed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.analyse import Axis
from dbdyno.analyse.trend import Trend, TrendRun
from dbdyno.records import metrics
from dbdyno.report.figures.charts import by_verdict, unjudged
from dbdyno.report.figures.vega import (
    Layer,
    Rows,
    Spec,
    data,
    margin_band,
    ratio_axis,
    spec,
    tooltip,
)
from dbdyno.report.words import numbers

HEIGHT = 190
TITLES = {
    Axis.TIME: "runs, by the day on which each began",
    Axis.COMMIT: "runs, by the commit of their source",
    Axis.VERSION: "runs, by the version of their engine",
}


Said = Sequence[tuple[str, str, str, str]]
"""What is said of each run, in their order: its name, when it began, what changed since the run before it,
and its label on the axis."""


def ratios(found: Trend, variant: str, said: Said) -> Spec | None:
    """A variant's ratio with its interval in every run, the margin as a band, and a line where something
    changed or a change point lies; None without a ratio."""
    rows = [
        row
        for place, run in enumerate(found.runs, 1)
        if (row := _ratio_row(place, run, variant, said)) is not None
    ]
    if not rows:
        return None
    ends = [row[end] for row in rows for end in ("low", "high")]
    y = alt.Y("ratio:Q", **ratio_axis(ends, found.margin, "variant / baseline (log scale)"))
    colour, shape = by_verdict(rows)
    tip = tooltip(run="run", began="began", text="ratio", verdict="verdict", against="to the runs before it")
    base = alt.Chart(data(rows)).encode(x=_runs(found, said), color=colour, tooltip=tip)
    interval = base.mark_rule(strokeWidth=2.4, strokeCap="round").encode(y="low:Q", y2="high:Q")
    dot = base.mark_point(size=70, filled=True, opacity=1, stroke="var(--paper)", strokeWidth=0.6)
    return _figure(
        [
            *margin_band(found.margin, "y"),
            *_changes(found, said),
            *_change_points(found, variant, said),
            interval,
            dot.encode(y=y, shape=shape),
        ],
        "The ratio of a variant to the baseline in every run, with its interval",
    )


def speeds(found: Trend, said: Said) -> Spec | None:
    """The baseline's response in every run, with its interval over blocks; None without one."""
    metric = metrics.find(found.metric)
    rows: Rows = [
        {
            "place": place,
            "mean": run.baseline.mean,
            "low": run.baseline.low,
            "high": run.baseline.high,
            "text": metric.format(run.baseline.mean),
            **_of_run(said[place - 1]),
        }
        for place, run in enumerate(found.runs, 1)
        if run.baseline is not None
    ]
    if not rows:
        return None
    y = alt.Y(
        "mean:Q",
        scale=alt.Scale(zero=False, nice=False, padding=12),
        axis=alt.Axis(title=f"{metric.title}, {metric.unit}".strip(", "), format="~s", tickCount=5),
    )
    base = alt.Chart(data(rows)).encode(
        x=_runs(found, said), tooltip=tooltip(run="run", began="began", text=metric.title)
    )
    return _figure(
        [
            *_changes(found, said),
            base.mark_rule(strokeWidth=2, color="var(--point)").encode(y="low:Q", y2="high:Q"),
            base.mark_point(size=60, filled=True, opacity=1, color="var(--point)").encode(y=y),
        ],
        "The baseline's speed in every run",
    )


def _figure(layers: list[Layer], about: str) -> Spec:
    return spec(alt.layer(*layers).properties(width="container", height=HEIGHT, description=about))


def _runs(found: Trend, said: Said) -> alt.X:
    """The runs side by side, with their days, commits or versions: dates in a scale of time would lie on each
    other."""
    count = len(found.runs)
    labels = [label for *_, label in said]
    return alt.X(
        "place:Q",
        scale=alt.Scale(domain=[0.5, count + 0.5], nice=False),
        axis=alt.Axis(
            values=list(range(1, count + 1)),
            labelExpr=f"{json.dumps(labels)}[datum.value - 1]",
            title=TITLES[found.axis],
            grid=False,
        ),
    )


def _changes(found: Trend, said: Said) -> list[Layer]:
    rows: Rows = [
        {"place": place - 0.5, "changed": said[place - 1][2], "began": said[place - 1][1]}
        for place, run in enumerate(found.runs, 1)
        if run.changed
    ]
    if not rows:
        return []
    lines = alt.Chart(data(rows)).mark_rule(strokeDash=[4, 3], strokeWidth=1.4, color="var(--faint)")
    return [lines.encode(x=_runs(found, said), tooltip=tooltip(changed="changed", began="from"))]


def _change_points(found: Trend, variant: str, said: Said) -> list[Layer]:
    """A thick line at each change point of the variant's row, and a band where it may lie as well."""
    places = {run.run: place for place, run in enumerate(found.runs, 1)}
    rows: Rows = [
        {
            "place": places[change.first] - 0.5,
            "times": numbers.times_text(change.ratio),
            "p": f"{change.p:.2g}",
            "first": change.first,
            "from": places[change.earliest] - 0.5,
            "to": places[change.latest] - 0.5,
        }
        for one in found.variants
        if one.variant == variant
        for change in one.change_points
    ]
    if not rows:
        return []
    lines = alt.Chart(data(rows)).mark_rule(strokeWidth=3.0, opacity=0.55, color="var(--point)")
    tip = tooltip(first="change point at", times="times the ratio before it", p="p")
    reach = alt.Chart(data([row for row in rows if row["from"] < row["to"]]))
    band = reach.mark_rect(opacity=0.12, color="var(--point)").encode(x=alt.X("from:Q"), x2="to:Q")
    return [band, lines.encode(x=_runs(found, said), tooltip=tip)]


def _ratio_row(place: int, run: TrendRun, variant: str, said: Said) -> dict[str, Any] | None:
    one = run.ratio(variant)
    if one is None or one.effect is None:
        return None
    effect = one.effect
    return {
        "place": place,
        "ratio": effect.ratio,
        "low": effect.ratio if effect.low is None else effect.low,
        "high": effect.ratio if effect.high is None else effect.high,
        "text": numbers.multiple_text(effect),
        "verdict": one.verdict.value if one.verdict else unjudged(one.role),
        "against": numbers.multiple_text(one.against_earlier) if one.against_earlier else numbers.DASH,
        **_of_run(said[place - 1]),
    }


def _of_run(said: tuple[str, str, str, str]) -> dict[str, str]:
    return {"run": said[0], "began": said[1]}
