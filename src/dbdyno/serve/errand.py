"""What a run tells the process that serves its pages."""

from __future__ import annotations

from dbdyno.frozen import Frozen

READY = "ready\n"
"""The answer, once all is loaded that pages need."""
DRAWN_S, FETCHED_S = 60.0, 10.0
"""So long at most the last page is drawn for whoever follows the run, and then fetched. A busy host may take
long to draw, and whoever has gone never fetches."""


class Errand(Frozen):
    """Which socket listens, by its descriptor; what guards the pages; whose they are; and which of them is
    always drawn."""

    descriptor: int
    port: int
    token: str
    store_url: str
    pinned: str
