"""The figures that a document may ask for, by name. Each is drawn from what was found, for pages alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from dbdyno.report.document import Figure
from dbdyno.report.figures import charts, search, soak, trend

DRAWINGS: Mapping[str, Callable[..., dict[str, Any] | Markup | None]] = {
    "comparison": charts.comparison,
    "effects": charts.effects,
    "frontier": charts.frontier,
    "gap": charts.waterfall,
    "given-up": search.by_given_up,
    "latency": charts.latency,
    "path": search.path,
    "request": charts.request,
    "series": charts.series,
    "shares": search.shares,
    "soak": soak.curves,
    "split": charts.split,
    "tradeoff": search.tradeoff,
    "trend-ratios": trend.ratios,
    "trend-speeds": trend.speeds,
    "trials": charts.trials,
}
"""A drawing is a specification for Vega, or markup of its own; None where there is nothing to draw."""


def drawn(figure: Figure) -> dict[str, Any] | Markup | None:
    """A figure of a document."""
    return DRAWINGS[figure.drawing](*figure.found)
