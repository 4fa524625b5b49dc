"""Versions by conditions as a heat map: colour says which way, strength how far, and the text how much."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from dbdyno.analyse.versions import VersionCell, Versions
from dbdyno.frozen import level_text
from dbdyno.report.figures.vega import Spec, data, spec, tooltip
from dbdyno.report.parts.versions import across_of
from dbdyno.report.words import naming, numbers

CELL_HEIGHT, CELL_WIDTH = 60, 150
STRENGTH_LEAST, STRENGTH_MOST = 0.08, 0.85
LABELS_MOST = 320


def versions(found: Versions) -> Spec | None:
    """None where no cell has a ratio. The worst cell is framed as the best is."""
    rows = [_row(found, cell) for cell in found.cells]
    if all(cell.effect is None for cell in found.cells):
        return None
    across = naming.factor_text(across_of(found))
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
            description=f"Each version over {found.first} under each condition",
        )
    )


def _row(found: Versions, cell: VersionCell) -> dict[str, Any]:
    across = across_of(found)
    levels = dict(zip(found.factors, map(level_text, cell.condition), strict=True))
    down = [f"{naming.factor_text(name)} {level}" for name, level in levels.items() if name != across]
    row: dict[str, Any] = {
        "column": levels[across],
        "line": ", ".join([cell.version, *down]),
        "verdict": cell.verdict.value if cell.verdict else numbers.DASH,
        "extreme": "worst" if cell == found.worst else "best" if cell == found.best else "",
    }
    if cell.effect is None:
        nothing = {"ratio": row["verdict"], "below": "", "told": numbers.DASH}
        return {**row, **nothing, "kind": "none", "strength": 0.0}
    gain = math.log(cell.effect.ratio) * (1 if found.higher_is_better else -1)
    return {
        **row,
        "ratio": numbers.ratio_text(cell.effect.ratio),
        "below": numbers.interval_text(cell.effect),
        "told": numbers.effect_text(cell.effect),
        "kind": "better" if gain > 0 else "worse",
        "strength": _strength(found, gain),
    }


def _strength(found: Versions, gain: float) -> float:
    """How strong a colour is: the same for a gain and a loss of one size, the largest of all cells fully."""
    sizes = [abs(math.log(cell.effect.ratio)) for cell in found.cells if cell.effect is not None]
    share = abs(gain) / max(sizes) if max(sizes) else 0.0
    return round(STRENGTH_LEAST + (STRENGTH_MOST - STRENGTH_LEAST) * share, 3)
