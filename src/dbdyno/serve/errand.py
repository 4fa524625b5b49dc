"""What a run tells the process that serves its pages."""

from __future__ import annotations

from dbdyno.frozen import Frozen

READY = "ready\n"
"""The answer, once all is loaded that pages need."""


class Errand(Frozen):
    """Which socket listens, by its descriptor; what guards the pages; whose they are; and which of them is
    always drawn."""

    descriptor: int
    port: int
    token: str
    store_url: str
    pinned: str
