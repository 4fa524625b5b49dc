"""One HTML file that holds everything: figures, tables, evidence. It asks the network for nothing.

The page carries Vega, Vega-Lite and Vega-Embed themselves (`vl_convert.javascript_bundle`), and a policy
that forbids every request; where scripts are off, the tables say it all.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from dbdyno.analyse.profile import Profile
from dbdyno.records import metrics
from dbdyno.report.figures import flame
from dbdyno.report.renderers.page import environment, in_page, template_text
from dbdyno.report.words import safe, verdicts
from dbdyno.report.words.moments import moment_text


def profiles(title: str, found: Sequence[Profile], notes: Sequence[str]) -> str:
    """The flame graphs of one variant or two, as a page of its own. They need no library."""
    return _page(
        "flame.html",
        title=title,
        graphs=flame.graphs(found),
        tables=flame.tables(found),
        notes=notes,
        row=flame.ROW,
        width=flame.WIDTH,
        number=metrics.number_text,
        own_css=Markup(template_text("flame.css")),
        own_script=Markup(template_text("flame.js")),
    )


def _page(template: str, **values: object) -> str:
    """A page whose template writes more than a document does."""
    environment().filters |= {
        "lines": lambda text: safe.clean_lines(str(text)),
        "sentence": lambda text: f"{text[:1].upper()}{text[1:]}",
        "when": moment_text,
        "slug": lambda verdict: verdicts.slug(verdict) if verdict else "none",
    }
    return in_page(template, **values)
