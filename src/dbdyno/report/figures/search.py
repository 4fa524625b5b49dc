"""The figures of a search: the ratio of each candidate in its order, the shares of changes, and what
candidates gain and cost. Where capacities are searched: latencies over the rate that was offered."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dbdyno.analyse.model import GIVEN_UP, Ratio, SearchResult
from dbdyno.records import metrics
from dbdyno.report.figures.vega import (
    LINES,
    Layer,
    Rows,
    Spec,
    data,
    legend_of_lines,
    margin_band,
    ratio_axis,
    spec,
    tooltip,
)
from dbdyno.report.words import numbers, search
from dbdyno.report.words.naming import factor_text, levels_text

HEIGHT, ROW_HEIGHT = 260, 34
FRAME_WIDTH = 600
KEEPS_ALL = "nothing"


def path(found: SearchResult, margin: float) -> Spec | None:
    """A point for each candidate, a line for the best so far, and the confirmed interval as a band; None
    without a candidate that has a ratio."""
    rows: Rows = [
        {
            "number": number,
            "ratio": one.ratio,
            "best": one.best,
            "text": numbers.ratio_text(one.ratio),
            "changes": search.changes_text(found, one.name, one.changed),
        }
        for number, one in enumerate(found.tried, 1)
        if one.ratio is not None
    ]
    if not rows:
        return None
    confirmed = _confirmed(found.effect)
    ends = [row["ratio"] for row in rows] + [end for row in confirmed for end in (row["low"], row["high"])]
    y = alt.Y("ratio:Q", **ratio_axis(ends, margin, "candidate / baseline (log scale)"))
    x = alt.X(
        "number:Q",
        scale=alt.Scale(domain=[0, len(found.tried) + 1], nice=False),
        axis=alt.Axis(title="candidates in the order of the search", tickMinStep=1, grid=False),
    )
    base = alt.Chart(data(rows)).encode(
        x=x, tooltip=tooltip(number="candidate", text="ratio in the search", changes="changes")
    )
    layers: list[Layer] = [*margin_band(margin, "y"), *_told_band(confirmed)]
    layers += [
        base.mark_line(interpolate="step-after", strokeWidth=2, color="var(--point)").encode(y="best:Q"),
        base.mark_point(size=55, filled=True, opacity=1, color="var(--point)").encode(y=y),
    ]
    about = "The ratio of each candidate to the baseline in the order of the search, and the best by then"
    return spec(alt.layer(*layers).properties(width="container", height=HEIGHT, description=about))


def shares(found: SearchResult, margin: float) -> Spec | None:
    """The share of each change with its interval; None where none was measured."""
    rows: Rows = [
        {
            "change": f"{factor_text(one.factor)}{' (taken back)' if one in found.removed else ''}",
            "ratio": one.share.ratio,
            "low": one.share.ratio if one.share.low is None else one.share.low,
            "high": one.share.ratio if one.share.high is None else one.share.high,
            "text": numbers.effect_text(one.share),
        }
        for one in (*found.changes, *found.removed)
        if one.share is not None
    ]
    if not rows:
        return None
    ends = [row[end] for row in rows for end in ("low", "high")]
    x = alt.X("ratio:Q", **ratio_axis(ends, margin, "winner / winner without it"))
    y = alt.Y("change:N", sort=[row["change"] for row in rows], axis=alt.Axis(title=None, labelLimit=320))
    base = alt.Chart(data(rows)).encode(y=y, tooltip=tooltip(change="change", text="share"))
    interval = base.mark_rule(strokeWidth=2.4, strokeCap="round", color="var(--point)")
    dot = base.mark_point(size=70, filled=True, opacity=1, color="var(--point)")
    layers = [*margin_band(margin), interval.encode(x="low:Q", x2="high:Q"), dot.encode(x=x)]
    about = "The share of each change in the winner's gain, with its interval"
    height = ROW_HEIGHT * len(rows)
    return spec(alt.layer(*layers).properties(width="container", height=height, description=about))


def tradeoff(found: SearchResult, cost: str, response: str, margin: float) -> Spec | None:
    """Each candidate by its response and a cost, and a line through those that no other beats in both; None
    where fewer than two have both."""
    rows: Rows = [
        {
            "ratio": one.ratio,
            "cost": one.costs[cost],
            "text": numbers.ratio_text(one.ratio),
            "cost_text": numbers.ratio_text(one.costs[cost]),
            "changes": search.changes_text(found, one.name, one.changed),
            "leads": cost in one.frontier,
        }
        for one in found.tried
        if one.ratio is not None and cost in one.costs
    ]
    if len(rows) < 2:
        return None
    titles = {"cost": metrics.find(cost).title, "ratio": metrics.find(response).title}
    axes = {
        field: ratio_axis([row[field] for row in rows], margin, f"{title}, candidate / baseline")
        for field, title in titles.items()
    }
    x, y = alt.X("cost:Q", **axes["cost"]), alt.Y("ratio:Q", **axes["ratio"])
    tip = tooltip(changes="changes", text=titles["ratio"], cost_text=titles["cost"])
    base = alt.Chart(data(rows)).encode(x=x, y=y, tooltip=tip)
    leading = alt.Chart(data([row for row in rows if row["leads"]])).encode(x=x, y=y, order="cost:Q")
    layers = [
        leading.mark_line(strokeWidth=2, color="var(--point)"),
        base.mark_point(size=55, filled=True, color="var(--point)").encode(
            opacity=alt.condition(alt.datum.leads, alt.value(1.0), alt.value(0.35))
        ),
    ]
    about = f"Candidates by {titles['ratio']} and {titles['cost']}"
    return spec(alt.layer(*layers).properties(width="container", height=HEIGHT, description=about))


def by_given_up(found: SearchResult, response: str, margin: float) -> Spec | None:
    """Each candidate by what it gives up and its response, a column for each loss; None where nothing is
    given up."""
    rows: Rows = [
        {
            "ratio": one.ratio,
            "text": numbers.ratio_text(one.ratio),
            "lost": search.given_up_text(found, one.name) or KEEPS_ALL,
            "changes": levels_text(one.changed),
            "leads": GIVEN_UP in one.frontier,
        }
        for one in found.tried
        if one.ratio is not None
    ]
    lost = sorted({row["lost"] for row in rows} - {KEEPS_ALL})
    if not lost:
        return None
    title = metrics.find(response).title
    y = alt.Y(
        "ratio:Q", **ratio_axis([row["ratio"] for row in rows], margin, f"{title}, candidate / baseline")
    )
    x = alt.X("lost:N", sort=[KEEPS_ALL, *lost], axis=alt.Axis(title="gives up", labelAngle=0))
    points = alt.Chart(data(rows)).mark_point(size=55, filled=True, color="var(--point)")
    layer = points.encode(
        x=x,
        y=y,
        tooltip=tooltip(changes="changes", text=title, lost="gives up"),
        opacity=alt.condition(alt.datum.leads, alt.value(1.0), alt.value(0.35)),
    )
    about = f"Candidates by {title} and what they give up"
    chart = alt.layer(*margin_band(margin, "y"), layer)
    return spec(chart.properties(width="container", height=HEIGHT, description=about))


def _confirmed(effect: Ratio | None) -> Rows:
    if effect is None or effect.low is None or effect.high is None:
        return []
    return [{"low": effect.low, "high": effect.high, "ratio": effect.ratio}]


def _told_band(rows: Rows) -> list[Layer]:
    """The interval that was confirmed, across the whole figure."""
    if not rows:
        return []
    band = alt.Chart(data(rows)).mark_rect(color="var(--point)", opacity=0.16).encode(y="low:Q", y2="high:Q")
    line = alt.Chart(data(rows)).mark_rule(color="var(--point)", strokeDash=[4, 3]).encode(y="ratio:Q")
    return [band, line]


def latency_over_rate(names: Sequence[str], points: Rows) -> Spec:
    """Percentiles of latency over the rate that was offered, a frame for each, all variants in each. Both
    axes are logarithmic, so that lines of all sizes can be told apart."""
    colours = alt.Scale(domain=names, range=[LINES[index % len(LINES)] for index in range(len(names))])
    tip = tooltip(variant="variant", told_rate="offered", latency="latency", told_ms="is",
                  told_kept="promise kept")  # fmt: skip
    base = alt.Chart().encode(
        x=alt.X(
            "rate:Q",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(title="offered, per second (log scale)", format=",.3~r", tickCount=6),
        ),
        y=alt.Y(
            "ms:Q",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(title="ms", format=",.3~r", tickCount=6),
        ),
        color=alt.Color("variant:N", scale=colours, legend=legend_of_lines(names, "bottom")),
        tooltip=tip,
    )
    layers = (
        base.mark_line(strokeWidth=1.6).encode(order="rate:Q"),
        base.mark_point(size=36, opacity=1).encode(
            fill=alt.condition("datum.kept", alt.Color("variant:N", scale=colours), alt.value("transparent"))
        ),
    )
    shown = list(dict.fromkeys(point["latency"] for point in points))
    about = "Latency over the offered rate, one line per variant"
    frames = alt.layer(*layers, data=data(points)).properties(
        width=FRAME_WIDTH, height=170, description=about
    )
    return spec(
        alt.vconcat(
            *(frames.transform_filter(alt.datum.latency == one).properties(title=one) for one in shown)
        )
    )
