"""The figure of a soak's rung: what the server held, a small chart for each gauge, with its phases below."""

from __future__ import annotations

from typing import Any

import altair as alt

from dbdyno.analyse.soak import Rung
from dbdyno.records.metrics import GAUGES
from dbdyno.report.figures.vega import Layer, Rows, Spec, data, spec, tooltip

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
