"""How Firebird takes over the data of an older version: the old one backs the database up, and the new one
restores the backup, as `gbak` does. Within one major version the file is opened as it is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.firebird.life import DATABASE, have_done, lay_out, start
from dbdyno.engines.firebird.obtaining import engine_of
from dbdyno.engines.upgrade import series_of
from dbdyno.errors import DynoError, EngineMissing
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation

TIMEOUT_S = 3600.0
BACKUP = "taken-over.fbk"


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 1)


def lacking(old: Installation, new: Installation) -> DynoError | None:
    """The service that backs up and restores stands in the engine's own file."""
    for one in (old, new):
        if not engine_of(one.prefix).is_file():
            return EngineMissing(
                f"Firebird {one.version} has no engine beside its client library to back up and restore",
                f"name a whole installation; {one.prefix} holds the client alone",
            )
    return None


def take_over(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    if series(old.version) == series(new.version):
        start(new, data, runtime, {}, Launch())
        return "opening the same file"
    pass_through("backup", old, data, runtime.resolve() / "old")
    pass_through("restore", new, data, runtime.resolve() / "new")
    # A restore keeps the size of pages, but not whether writes are forced.
    start(new, data, runtime, creation, Launch())
    return "backup and restore"


def pass_through(action: str, installation: Installation, data: Path, root: Path) -> None:
    """Makes of the database a backup, or of the backup the database, by one version's own library."""
    environment = lay_out(installation, root, {})
    asked = {"action": action, "backup": str(data / BACKUP)}
    have_done(asked, root, environment, data / DATABASE, TIMEOUT_S)
    (data / (DATABASE if action == "backup" else BACKUP)).unlink()
    shutil.rmtree(root)
