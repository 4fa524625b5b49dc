"""How SQLite takes over the data of an older version: all versions since 3.0.0 read and write one format
(https://www.sqlite.org/formatchng.html), so it opens the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.sqlite import life
from dbdyno.engines.upgrade import series_of
from dbdyno.errors import DriverFailed, DynoError, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 1)


def lacking(_old: Installation, _new: Installation) -> DynoError | None:
    return None


def take_over(
    _old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    server = life.start(new, data, runtime, creation, Launch())
    try:
        launch = Launch().confined_to(*server.driver_folders)
        with LoadProcess(server.driver_environment, launch) as process:
            process.query(server.url, "SELECT COUNT(*) FROM sqlite_master")
    except DriverFailed as failed:
        raise ServerFailed(
            f"SQLite {new.version} could not open the file: {failed.message}", failed.hint
        ) from None
    return "opening the same file"
