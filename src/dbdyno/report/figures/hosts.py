"""Hosts of a fleet as a forest: a small figure for each variant, a row for all hosts and one for each."""

from __future__ import annotations

from typing import Any

import altair as alt

from dbdyno.analyse.found import HostEffect, OnHosts
from dbdyno.analyse.model import Analysis, Ratio
from dbdyno.records import metrics
from dbdyno.report.figures.vega import Rows, Spec, data, margin_band, ratio_axis, spec, tooltip
from dbdyno.report.words import hosts as words
from dbdyno.report.words import naming, numbers, remarks, safe

OVER = "over hosts"
ROW = 24
LABELS_MOST = 220
COLOURS = {
    "faster": "var(--faster)",
    "slower": "var(--slower)",
    "no effect": "var(--no-effect)",
    "open": "var(--inconclusive)",
}
KINDS = alt.Scale(domain=[*COLOURS, OVER], range=[*COLOURS.values(), "var(--ink)"])
SHAPES = alt.Scale(
    domain=[*COLOURS, OVER], range=["triangle-right", "triangle-left", "square", "circle", "diamond"]
)


def forest(analysis: Analysis) -> Spec | None:
    """None where no variant was compared on any host."""
    if analysis.hosts is None or not analysis.hosts.variants:
        return None
    each = [_rows(analysis, one) for one in analysis.hosts.variants]
    name = naming.called(analysis)
    ends = [row[end] for rows in each for row in rows for end in ("low", "high", "from", "to")]
    title = f"{metrics.find(analysis.method.response).title}: ratio to the baseline (log scale)"
    axis = ratio_axis(ends, analysis.method.margin, title)
    figures = [
        _of_variant(rows, axis, analysis.method.margin, name[one.variant])
        for rows, one in zip(each, analysis.hosts.variants, strict=True)
    ]
    return spec(alt.vconcat(*figures, spacing=14).properties(description="Each variant on each host"))


def _of_variant(rows: Rows, axis: dict[str, Any], margin: float, title: str) -> Any:
    names = [row["host"] for row in rows]
    y = alt.Y("host:N", sort=names, title=None, axis=alt.Axis(labelLimit=LABELS_MOST, ticks=False))
    tip = tooltip(host="host", told="ratio", says="by itself", blocks="blocks")
    base = alt.Chart(data(rows)).encode(y=y, color=alt.Color("kind:N", scale=KINDS, legend=None), tooltip=tip)
    further = base.mark_rule(strokeWidth=1, strokeDash=[3, 3]).encode(x=alt.X("from:Q", **axis), x2="to:Q")
    line = base.mark_rule(strokeWidth=2.4, strokeCap="round").encode(x="low:Q", x2="high:Q")
    dot = base.mark_point(size=80, filled=True, opacity=1).encode(
        x=alt.X("ratio:Q", **axis), shape=alt.Shape("kind:N", scale=SHAPES, legend=None)
    )
    return alt.layer(*margin_band(margin), further, line, dot).properties(
        width=520, height=ROW * len(rows), title=alt.Title(title, anchor="start", fontSize=12)
    )


def _rows(analysis: Analysis, one: OnHosts) -> Rows:
    effect = remarks.variant_of(analysis, one.variant).effect
    first = [] if effect is None else [_over(effect, one)]
    return [*first, *(_on(analysis, each) for each in one.each)]


def _over(effect: Ratio, one: OnHosts) -> dict[str, Any]:
    low, high = effect.low or effect.ratio, effect.high or effect.ratio
    return {
        "host": OVER,
        "kind": OVER,
        "ratio": effect.ratio,
        "low": low,
        "high": high,
        "from": one.further_low or low,
        "to": one.further_high or high,
        "told": numbers.effect_text(effect),
        "says": numbers.DASH,
        "blocks": effect.pairs,
    }


def _on(analysis: Analysis, each: HostEffect) -> dict[str, Any]:
    low, high = each.low or each.ratio, each.high or each.ratio
    says = words.told_text(analysis, each.told)
    return {
        "host": safe.clean(each.host),
        "kind": says,
        "ratio": each.ratio,
        "low": low,
        "high": high,
        "from": low,
        "to": low,
        "told": f"{numbers.ratio_text(each.ratio)} ({words.interval_of(each)})",
        "says": says,
        "blocks": each.blocks,
    }
