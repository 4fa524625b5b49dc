"""Versions by conditions as a heat map: colour says which way, strength how far, and the text how much."""

from __future__ import annotations

import altair as alt

from dbdyno.report.figures.vega import Rows, Spec, data, spec, tooltip

CELL_HEIGHT, CELL_WIDTH = 60, 150
LABELS_MOST = 320


def versions(rows: Rows, across: str, first: str) -> Spec:
    """A cell for each row, the conditions `across` side by side. The worst cell is framed as the best is."""
    columns, lines = (list(dict.fromkeys(str(row[name]) for row in rows)) for name in ("column", "line"))
    x = alt.X("column:N", sort=columns, title=across, axis=alt.Axis(orient="top", labelAngle=0, ticks=False))
    y = alt.Y("line:N", sort=lines, title=None, axis=alt.Axis(labelLimit=LABELS_MOST, ticks=False))
    kinds = alt.Scale(
        domain=["better", "worse", "none"], range=["var(--faster)", "var(--slower)", "var(--inconclusive)"]
    )
    tip = tooltip(line="version", column=across, told="ratio", verdict="verdict")
    base = alt.Chart(data(rows)).encode(x=x, y=y)
    fill = base.mark_rect().encode(
        color=alt.Color("kind:N", scale=kinds, legend=None),
        opacity=alt.Opacity("strength:Q", scale=None, legend=None),
        tooltip=tip,
    )
    frame = base.transform_filter("datum.extreme != ''").mark_rect(
        fill=None, stroke="var(--ink)", strokeWidth=2.5
    )
    figures = base.mark_text(dy=-12, color="var(--ink)", fontSize=14, fontWeight="bold").encode(
        text="ratio:N"
    )
    below = base.mark_text(dy=5, color="var(--ink)", fontSize=11).encode(text="below:N")
    ends = base.mark_text(dy=20, color="var(--ink)", fontSize=11, fontWeight="bold").encode(text="extreme:N")
    return spec(
        alt.layer(fill, frame, figures, below, ends).properties(
            width=CELL_WIDTH * len(columns),
            height=CELL_HEIGHT * len(lines),
            description=f"Each version over {first} under each condition",
        )
    )
