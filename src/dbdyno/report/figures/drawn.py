"""Figures that are markup of their own: they need no library in the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from dbdyno.records.metrics import number_text
from dbdyno.report.renderers.page import fragment, template_text

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate
    from dbdyno.analyse.profile import Profile


def bars(found: Gate) -> Markup | None:
    """A gate's bars, which need no script, so that its page is small."""
    from dbdyno.report.figures import charts

    made = charts.figure(found)
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
