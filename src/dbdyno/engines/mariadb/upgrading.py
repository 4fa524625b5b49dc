"""How MariaDB takes over the data of an older version: its server starts on them, and `mariadb-upgrade` then
renews the system tables and checks all others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.engine import ending
from dbdyno.engines.mariadb import life
from dbdyno.engines.mariadb.obtaining import SERVER
from dbdyno.engines.server import ACCOUNT, socket_of
from dbdyno.engines.upgrade import STOP_S, run_tool, series_of
from dbdyno.errors import DynoError, EngineMissing
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.client import fronts, programs
from dbdyno.obtain.installation import Installation

TOOLS = {
    "mariadb-upgrade": ("mariadb-upgrade", "mysql_upgrade"),
    "mariadb": ("mariadb", "mysql"),
    "mariadb-check": ("mariadb-check", "mysqlcheck"),
}
"""The upgrade and the two programs that it runs, each with its older name."""


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 2)


def lacking(_old: Installation, new: Installation) -> DynoError | None:
    for name, found in _tools(new).items():
        if found is None:
            return EngineMissing(
                f"MariaDB {new.version} takes over data with `{name}`, which is not on this machine",
                "`dyno engines fetch mariadb` obtains it; or install the client's package beside the server",
            )
    return None


def take_over(
    _old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    server = life.start(new, data, runtime, creation, Launch())
    with ending(server, STOP_S):
        found = {name: command for name, command in _tools(new).items() if command is not None}
        beside = fronts(runtime / "tools", found)
        upgrade = str(beside / "mariadb-upgrade")
        options = ["--no-defaults", f"--socket={socket_of(server.url)}", f"--user={ACCOUNT}"]
        steps = Launch().steps(data, runtime, *new.writes)
        run_tool("mariadb-upgrade", [upgrade, *options], {"TMPDIR": str(runtime)}, steps, runtime)
    return "mariadb-upgrade"


def _tools(new: Installation) -> dict[str, list[str] | None]:
    return {name: next(programs(new, SERVER.client, *names), None) for name, names in TOOLS.items()}
