"""The figures that a document may ask for, by name. Each is drawn from what was found, for pages alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dbdyno.analyse.gate import Gate
from dbdyno.analyse.profile import Profile
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Figure
from dbdyno.report.figures import charts, flame, gate, heat, hosts, search, soak, trend
from dbdyno.report.renderers.page import fragment, template_text


def _bars(found: Gate) -> Markup | None:
    """A gate's bars, which need no script, so that its page is small."""
    made = gate.figure(found)
    return None if made is None else fragment("bars.html", figure=made)


def _flame(profiles: Sequence[Profile]) -> Markup:
    """The flame graphs of one variant or two, with what widens their boxes. They need no library."""
    return fragment(
        "flame.html",
        graphs=flame.graphs(profiles),
        row=flame.ROW,
        width=flame.WIDTH,
        number=number_text,
        css=Markup(template_text("flame.css")),
        script=Markup(template_text("flame.js")),
    )


DRAWINGS: Mapping[str, Callable[..., dict[str, Any] | Markup | None]] = {
    "bars": _bars,
    "comparison": charts.comparison,
    "effects": charts.effects,
    "flame": _flame,
    "frontier": charts.frontier,
    "gap": charts.waterfall,
    "given-up": search.by_given_up,
    "hosts": hosts.forest,
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
    "versions": heat.versions,
}
"""A drawing is a specification for Vega, or markup of its own; None where there is nothing to draw."""


def drawn(figure: Figure) -> dict[str, Any] | Markup | None:
    """A figure of a document."""
    return DRAWINGS[figure.drawing](*figure.found)
