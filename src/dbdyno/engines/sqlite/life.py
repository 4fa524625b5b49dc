"""SQLite from nothing to a database that the load process can open."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.embedded import EmbeddedServer, refuse_unknown, require_database
from dbdyno.engines.sqlite.settings import CREATION, PRAGMAS
from dbdyno.engines.sqlite.url import url
from dbdyno.errors import DriverFailed, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

DATABASE = "dyno.sqlite"


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 10_000_000, "an SQLite database")
    data.mkdir(mode=0o700)
    creation = {name: level for name, level in settings.items() if name in CREATION}
    try:
        with LoadProcess({}, Launch()) as process:
            # An empty file has no header yet: this writes it, and with it what was chosen.
            process.query(url(data / DATABASE, installation.library, creation), "VACUUM")
    except DriverFailed as failed:
        shutil.rmtree(data, ignore_errors=True)
        raise ServerFailed(f"SQLite could not make its database: {failed.message}", failed.hint) from None


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> EmbeddedServer:
    database = data / DATABASE
    require_database(database)
    refuse_unknown(settings, PRAGMAS, "Dyno cannot set SQLite's", f"there are: {', '.join(sorted(PRAGMAS))}")
    chosen = {name: level for name, level in settings.items() if name not in CREATION}
    return EmbeddedServer(
        url=url(database, installation.library, chosen),
        version=installation.version,
        driver_environment=dict(launch.environment),
        driver_folders=(data, runtime, *installation.writes),
    )
