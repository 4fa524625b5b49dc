"""How often a thread fell asleep and woke."""

from __future__ import annotations

from pathlib import Path


def switches_of(status: Path) -> int:
    """Of a thread, by its file `status` under /proc."""
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["voluntary_ctxt_switches"])
