"""What the flow needs of whatever puts the load on a server. The real one is `drive.LoadProcess`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Job = Mapping[str, Any]
"""The driver's job, see `crates/driver`: url, workload, options, clients, durations, seed."""

Tally = dict[str, Any]
"""What the driver counted: histograms, series, errors by kind, its own CPU."""


class Load(Protocol):
    """One holder of the driver. Each method raises DriverFailed with the driver's own message and hint."""

    @property
    def process_id(self) -> int: ...

    def prepare(self, job: Job) -> dict[str, Any]:
        """Makes the workload's schema and rows."""
        ...

    def run(self, job: Job) -> Tally:
        """Puts the load on the server."""
        ...

    def check(self, job: Job, tally: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """The workload's invariants: name, holds, detail."""
        ...

    def query(self, url: str, sql: str) -> list[list[str | float | None]]:
        """The rows of one statement."""
        ...

    def close(self) -> None: ...

    def kill(self) -> None: ...
