"""One variant on its way to a running server, and that server once it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.driver.load import Load
from dbdyno.engines.base import Engine, Server
from dbdyno.frozen import Level
from dbdyno.host.journal import Journal
from dbdyno.host.launch import Launch
from dbdyno.host.volumes.volume import Volume, Wish
from dbdyno.obtain.installation import Installation


@dataclass
class Setup:
    """One variant on its way to a running server. Each layer adds its part before the start.

    `settings` go to the engine, `launch` to its process, `load_launch` to the load process, `job` to the
    driver (see the driver's `Job`). `wish` asks for a volume (None: a folder), `volume` is the one in place.
    `scratch` is this trial's own folder, removed when the trial ends; changes to the host go through
    `journal`.
    """

    engine: Engine
    installation: Installation
    scratch: Path
    journal: Journal
    settings: dict[str, Level] = field(default_factory=dict)
    launch: Launch = field(default_factory=Launch)
    load_launch: Launch = field(default_factory=Launch)
    job: dict[str, Any] = field(default_factory=dict)
    wish: Wish | None = None
    volume: Volume | None = None
    drop_page_cache: bool = False
    allowed_devices: frozenset[Path] = frozenset()

    @property
    def data(self) -> Path:
        """Where the server's data directory is, or will be."""
        return self.volume.data if self.volume else self.scratch / "data"


@dataclass(frozen=True)
class Running:
    """A server that answers, and the means to look at it: what a layer reads its proof from.

    The tally and the engine's counters around the load are empty until the load is over.
    """

    setup: Setup
    server: Server
    load: Load
    tally: Mapping[str, Any] = field(default_factory=dict)
    status_before: Mapping[str, float] = field(default_factory=dict)
    status_after: Mapping[str, float] = field(default_factory=dict)

    def ask(self, sql: str) -> list[list[str | float | None]]:
        """Runs one SQL statement on the system under test and returns its rows."""
        return self.load.query(self.server.url, sql)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The server's processes; an embedded engine lives in the load process."""
        return (self.load.process_id,) if self.setup.engine.embedded else self.server.process_ids

    def status(self) -> dict[str, float]:
        """The engine's own counters, now."""
        return self.setup.engine.status(self.ask)
