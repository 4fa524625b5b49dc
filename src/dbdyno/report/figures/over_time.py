"""What changed over time: a quantity of a run in all its blocks, and what a server held in a soak's rung."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from dbdyno.analyse.soak import Rung
from dbdyno.records.metrics import GAUGES
from dbdyno.report.figures.vega import (
    COUNT_LABELS,
    LINES,
    REFERENCE,
    Layer,
    Rows,
    Spec,
    data,
    legend_of_lines,
    spec,
    tooltip,
)

FRAME_HEIGHT = 96


def frame(
    title: str, rows: Rows, names: Sequence[str], borders: Sequence[int], log: bool, legend: bool
) -> Spec:
    """One quantity second by second, a line for each trial in the colour of its variant. A row is a trial,
    with lists of its `second` and `value`; a line stands at each of the `borders` between two blocks."""
    shown = legend_of_lines(names, "top") if legend and names[1:] else None
    colours = alt.Scale(domain=list(names), range=[REFERENCE, *LINES][: len(names)])
    scale = alt.Scale(type="symlog", constant=0.1) if log else alt.Scale(zero=True)
    lines = (
        alt.Chart(data(rows))
        .transform_flatten(["second", "value"])
        # A block of one second is a point, of which a line shows nothing.
        .mark_line(strokeWidth=1.3, opacity=0.9, point=alt.OverlayMarkDef(size=12))
        .encode(
            x=alt.X(
                "second:Q",
                scale=alt.Scale(nice=False),
                axis=alt.Axis(title=None, tickCount=6, grid=False, format="d"),
            ),
            y=alt.Y(
                "value:Q",
                scale=scale,
                axis=alt.Axis(title=None, tickCount=3, format="~s", labelExpr=COUNT_LABELS),
            ),
            color=alt.Color("variant:N", scale=colours, legend=shown),
            detail="block:N",
            tooltip=tooltip(variant="variant", block="block", second="second", value="value"),
        )
    )
    rules = alt.Chart(data([{"border": at} for at in borders])).mark_rule(color="var(--rule)", strokeWidth=1)
    layers = (rules.encode(x="border:Q"), lines) if borders else (lines,)
    heading = alt.TitleParams(title, anchor="start", fontSize=12, fontWeight="normal", color="var(--ink-2)")
    return spec(
        alt.layer(*layers).properties(
            width="container",
            height=FRAME_HEIGHT,
            title=heading,
            description=f"{title}, second by second",
        )
    )


BESIDE_HEIGHT, SHADE = 220, 0.14
"""A frame that stands alone is higher. A shade that lies on another one is still seen."""


def beside_load(names: Sequence[str], rows: Rows, spans: Rows) -> Spec:
    """The throughput of each variant over the seconds of its load, and a shade in its colour from when to
    when something was done beside it. A row has lists of its `second` and `value`."""
    drawn_in = dict(zip(names, [REFERENCE, *LINES], strict=False))
    colours = alt.Scale(domain=list(drawn_in), range=list(drawn_in.values()))
    legend = legend_of_lines(names, "top") if names[1:] else None
    seconds = alt.Axis(title="second of the load", tickCount=8, grid=False, format="d")
    # Each in a layer of its own, so that the legend is that of the lines.
    shades = [
        alt.Chart(data([span]))
        .mark_rect(opacity=SHADE, color=drawn_in[span["variant"]])
        .encode(
            x=alt.X("from:Q", scale=alt.Scale(nice=False), axis=seconds),
            x2="to:Q",
            tooltip=tooltip(variant="variant", act="act", took="took"),
        )
        for span in spans
        if span["variant"] in drawn_in
    ]
    lines = (
        alt.Chart(data(rows))
        .transform_flatten(["second", "value"])
        .mark_line(strokeWidth=1.6)
        .encode(
            x=alt.X("second:Q", axis=seconds),
            y=alt.Y(
                "value:Q", axis=alt.Axis(title="per second", tickCount=5, format="~s", labelExpr=COUNT_LABELS)
            ),
            color=alt.Color("variant:N", scale=colours, legend=legend),
            tooltip=tooltip(variant="variant", second="second", value="per second"),
        )
    )
    return spec(
        alt.layer(*shades, lines).properties(
            width="container",
            height=BESIDE_HEIGHT,
            description="Throughput second by second, with what was done beside the load",
        )
    )


SMALL, HEIGHT, COLUMNS = 250, 96, 3


def curves(rung: Rung, name: str) -> Spec | None:
    """Each gauge over the minutes of a rung, with a line where a phase begins; None where nothing was
    watched."""
    rows: Rows = [
        {"gauge": GAUGES[curve.gauge].title, "minute": round(second / 60.0, 3), "value": value}
        for curve in rung.curves
        for second, value in zip(curve.seconds, curve.values, strict=True)
    ]
    if not rows:
        return None
    titles = [GAUGES[curve.gauge].title for curve in rung.curves]
    header = alt.Header(labelAnchor="start", labelPadding=4)
    return spec(
        alt.layer(_phases(), _lines())
        .properties(width=SMALL, height=HEIGHT, description=f"What the server held, {name}")
        .facet(
            facet=alt.Facet("gauge:N", sort=titles, title=None, header=header),
            columns=COLUMNS,
            spacing={"row": 18, "column": 24},
            data=data([*rows, *_begun(rung, titles)]),
        )
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )


def _begun(rung: Rung, titles: list[str]) -> Rows:
    """When each phase began, in every chart."""
    return [
        {"gauge": title, "began": round(phase.began_s / 60.0, 3), "phase": phase.name}
        for title in titles
        for phase in rung.phases
        if phase.recovery is None
    ]


def _lines() -> Layer:
    return (
        alt.Chart()
        .transform_filter("isValid(datum.value)")
        .mark_line(strokeWidth=1.3, color="var(--point)")
        .encode(
            x=_minutes("minute:Q"),
            y=alt.Y(
                "value:Q",
                scale=alt.Scale(zero=False, nice=False, padding=4),
                axis=alt.Axis(title=None, tickCount=3, format="~s"),
            ),
        )
    )


def _phases() -> Layer:
    return (
        alt.Chart()
        .transform_filter("isValid(datum.began)")
        .mark_rule(strokeDash=[3, 3], strokeWidth=1, color="var(--faint)")
        .encode(x=_minutes("began:Q"), tooltip=tooltip(phase="phase begins"))
    )


def _minutes(field: str) -> Any:
    return alt.X(
        field,
        scale=alt.Scale(nice=False),
        axis=alt.Axis(title="minutes", tickCount=5, grid=False),
    )
