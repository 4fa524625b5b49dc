"""The stage that puts the load on a server."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.layers.setup import Running


def drive(running: Running) -> Running:
    """Puts the job's load on the server, with the engine's own counters read right before and right after
    it."""
    before = running.status()
    tally = running.load.run(running.setup.job)
    return replace(running, tally=tally, status_before=before, status_after=running.status())
