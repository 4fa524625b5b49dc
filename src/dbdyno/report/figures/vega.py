"""What all figures of a page share: a Vega-Lite specification in the page's own colours, and axes of ratios.

Colours are CSS variables: the page decides what they are, so light, dark and print need no second figure.
Vega's SVG renderer passes them through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt
from altair.utils import schemapi

# The charts are those of this package, and its tests hold each against Vega-Lite's schema. To check every
# part of them on its way into a page takes most of a page's time.
schemapi.disable_debug_mode()

Spec = dict[str, Any]
Rows = list[dict[str, Any]]
Layer = Any
"""A chart that is part of another. Altair's fluent calls give no type of their own."""

REFERENCE = "var(--ink)"

COUNT_LABELS = "datum.value ? datum.label : '0'"
LINES = tuple(f"var(--line-{index})" for index in range(8))
LETTER, SYMBOL = 6.8, 34
"""How wide a letter of a legend is, and the mark before a name with the room around it."""
TICKS_MOST = 9
RATIO_TICKS: tuple[tuple[float, ...], ...] = (
    (0.98, 0.985, 0.99, 0.995, 1, 1.005, 1.01, 1.015, 1.02),
    (0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06),
    (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2),
    (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10),
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100),
    (0.001, 0.01, 0.1, 1, 10, 100, 1000),
)


def spec(chart: Any) -> Spec:
    """A chart's specification, as wide as its place in the page where it asks for that."""
    made: Spec = chart.configure(**_CONFIG).to_dict(validate=schemapi.DEBUG_MODE)
    if made.get("width") == "container":
        made["autosize"] = {"type": "fit-x", "contains": "padding"}
    return made


def data(rows: Rows) -> alt.Data:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def tooltip(**titles: str) -> list[alt.Tooltip]:
    """Fields and their titles, in this order; what is shown is text already."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def margin_band(margin: float, axis: str = "x") -> tuple[Layer, Layer]:
    """The band of no effect and the line of equality, across the axis of ratios."""
    band = alt.Chart(data([{"low": 1 / (1 + margin), "high": 1 + margin}]))
    line = alt.Chart(data([{"one": 1}]))
    return (
        band.mark_rect(color="var(--band)", opacity=1).encode(**{axis: "low:Q", f"{axis}2": "high:Q"}),
        line.mark_rule(color=REFERENCE, strokeWidth=1).encode(**{axis: "one:Q"}),
    )


def ratio_domain(values: Sequence[float], margin: float) -> tuple[float, float]:
    """The log axis: all of the ratios, the margin, and some air; an interval beyond all measure is cut
    off.
    """
    low = max(min([*values, 1.0 / (1.0 + margin)]), 1e-3)
    high = min(max([*values, 1.0 + margin]), 1e3)
    air = (high / low) ** 0.04
    return low / air, high * air


def ratio_axis(values: Sequence[float], margin: float, title: str) -> dict[str, Any]:
    """The scale and the axis of a channel of ratios: logarithmic, with all of them on it."""
    low, high = ratio_domain(values, margin)
    return {
        "scale": alt.Scale(type="log", domain=[low, high], nice=False, clamp=True),
        "axis": alt.Axis(values=ratio_ticks(low, high), format=".4~g", title=title),
    }


def ratio_ticks(low: float, high: float) -> list[float]:
    """The finest set of round ratios of which no more than nine fall on the axis, and 1 among them."""
    for candidates in RATIO_TICKS:
        if candidates[0] <= low and high <= candidates[-1]:
            inside = [tick for tick in candidates if low <= tick <= high]
            if 3 <= len(inside) <= TICKS_MOST:
                return inside
    return [tick for tick in RATIO_TICKS[-2] if low <= tick <= high] or [1]


def columns_for(names: Sequence[str], most: int) -> alt.ExprRef:
    """As many columns of a legend as have room for the longest name."""
    wide = LETTER * max(map(len, names), default=0) + SYMBOL
    return alt.ExprRef(f"max(1, min({most}, floor(width / {wide:.0f})))")


def legend_of_lines(names: Sequence[str], orient: Literal["top", "bottom"]) -> alt.Legend:
    """A legend of lines. A name that is wider than the figure is cut, because a legend does not break its
    lines."""
    return alt.Legend(
        title=None,
        orient=orient,
        columns=columns_for(names, 3),
        symbolType="stroke",
        labelLimit=alt.ExprRef(f"width - {SYMBOL}"),
    )


_FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink-2)",
        "titleColor": "var(--ink-2)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "gridColor": "var(--grid)",
        "domainColor": "var(--rule)",
        "tickColor": "var(--rule)",
        "tickSize": 4,
        "labelPadding": 6,
    },
    # A title ends where its axis does, so that a long one has the room of the names before the axis.
    "axisX": {"titleAnchor": "end", "labelOverlap": "greedy", "labelSeparation": 5},
    "legend": {"labelColor": "var(--ink-2)", "labelFontSize": 12, "symbolStrokeWidth": 2.5},
    "header": {"labelColor": "var(--ink)", "labelFontSize": 12, "labelFontWeight": "normal"},
}
