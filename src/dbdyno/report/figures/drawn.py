"""The figures that a document may ask for, by name. Each is drawn from what was found, for pages alone, and
imported when a page has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dbdyno.records.metrics import number_text
from dbdyno.registry import Table, registry
from dbdyno.report.document import Figure
from dbdyno.report.renderers.page import fragment, template_text

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate
    from dbdyno.analyse.profile import Profile


def bars(found: Gate) -> Markup | None:
    """A gate's bars, which need no script, so that its page is small."""
    from dbdyno.report.figures import gate

    made = gate.figure(found)
    return None if made is None else fragment("bars.html", figure=made)


def flames(profiles: Sequence[Profile]) -> Markup:
    """The flame graphs of one variant or two, with what widens their boxes. They need no library."""
    from dbdyno.report.figures import flame

    return fragment(
        "flame.html",
        graphs=flame.graphs(profiles),
        row=flame.ROW,
        width=flame.WIDTH,
        number=number_text,
        css=Markup(template_text("flame.css")),
        script=Markup(template_text("flame.js")),
    )


DRAWINGS: Table[Callable[..., dict[str, Any] | Markup | None]] = registry(
    {
        "bars": "dbdyno.report.figures.drawn:bars",
        "comparison": "dbdyno.report.figures.charts:comparison",
        "effects": "dbdyno.report.figures.charts:effects",
        "flame": "dbdyno.report.figures.drawn:flames",
        "frontier": "dbdyno.report.figures.charts:frontier",
        "gap": "dbdyno.report.figures.charts:waterfall",
        "given-up": "dbdyno.report.figures.search:by_given_up",
        "hosts": "dbdyno.report.figures.hosts:forest",
        "latency": "dbdyno.report.figures.charts:latency",
        "path": "dbdyno.report.figures.search:path",
        "request": "dbdyno.report.figures.charts:request",
        "series": "dbdyno.report.figures.charts:series",
        "shares": "dbdyno.report.figures.search:shares",
        "soak": "dbdyno.report.figures.soak:curves",
        "split": "dbdyno.report.figures.charts:split",
        "tradeoff": "dbdyno.report.figures.search:tradeoff",
        "trend-ratios": "dbdyno.report.figures.trend:ratios",
        "trend-speeds": "dbdyno.report.figures.trend:speeds",
        "trials": "dbdyno.report.figures.charts:trials",
        "versions": "dbdyno.report.figures.heat:versions",
    }
)
"""A drawing is a specification for Vega, or markup of its own; None where there is nothing to draw."""


def drawn(figure: Figure) -> dict[str, Any] | Markup | None:
    """A figure of a document."""
    return DRAWINGS[figure.drawing](*figure.found)
