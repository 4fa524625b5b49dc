"""The fence around a fleet's records: the database takes one only while the lease is in force under which it
was made. The worker's own idea of time has no part in that.
"""

from __future__ import annotations

import json

from dbdyno.errors import Stopped
from dbdyno.records.database import Execute

IN_FORCE = (
    "SELECT 1 FROM dyno_leases WHERE fence = ? AND run = ? AND upper(during) > clock_timestamp() FOR SHARE"
)
"""Whoever gives the host away waits for the lock, so no record comes in under a lease that has ended."""


class LeaseOver(Stopped):
    """The lease of this host is over: what was measured under it does not count, and is measured again."""


def require_in_force(execute: Execute, run: str, fence: int) -> None:
    """Raises LeaseOver within the transaction that would keep a record."""
    # Who is stopped before its end must not keep the host from everybody else.
    execute("SET LOCAL idle_in_transaction_session_timeout = '10s'")
    if not execute(IN_FORCE, fence, run):
        raise LeaseOver(
            f"the store refused a record of run {run}: lease {fence} of this host is over",
            "the worker measures the trial again under its next lease",
        )


def note_late(execute: Execute, run: str, trial: int, fence: int) -> None:
    """Keeps that a record was refused."""
    execute("INSERT INTO dyno_late (run, trial, fence) VALUES (?, ?, ?)", run, trial, fence)


def fence_of(document: str) -> int:
    """The number of a stored record's lease; 0 for one of no fleet."""
    return int(json.loads(document).get("fence", 0)) if '"fence"' in document else 0
