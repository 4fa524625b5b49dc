"""How PostgreSQL takes over the data of an older version: `pg_upgrade` with links, then `ANALYZE`, because
versions before 18 leave the planner's statistics behind. Within one major version the server opens them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver.query import query
from dbdyno.engines.engine import ending
from dbdyno.engines.postgresql import life
from dbdyno.engines.postgresql.obtaining import SERVER, tool
from dbdyno.engines.postgresql.taking import databases
from dbdyno.engines.server import ACCOUNT, within
from dbdyno.engines.upgrade import STOP_S, run_tool, series_of
from dbdyno.errors import DynoError, EngineMissing, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.user_namespace import step_down
from dbdyno.obtain import path
from dbdyno.obtain.client import fronts, programs
from dbdyno.obtain.installation import Installation

OF_SERVER = ("pg_ctl", "pg_controldata", "pg_resetwal")
"""What `pg_upgrade` needs beside either server."""
OF_NEW = ("initdb", "pg_upgrade")
OF_CLIENT = ("pg_dump", "pg_dumpall", "pg_restore", "psql", "vacuumdb")
"""Clients that it needs, of exactly its own version."""
NEEDED = "an installation of PostgreSQL as Debian's packages have it holds them; npm's packages do not"
RELEASE = re.compile(r"\d+\.\d+")


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 1)


def lacking(old: Installation, new: Installation) -> DynoError | None:
    if series(old.version) == series(new.version):
        return None
    absent = [name for name, command in _tools(old, new=False).items() if command is None]
    if absent:
        return _missing(old, new, absent)
    absent = [name for name, command in _tools(new, new=True).items() if command is None]
    return _missing(new, new, absent) if absent else None


def take_over(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    is_later = series(old.version) != series(new.version)
    if is_later:
        _upgrade(old, new, data, runtime)
    server = life.start(new, data, runtime, {}, Launch())
    with ending(server, STOP_S):
        for name in databases(server.url, query):
            query(within(server.url, name), "ANALYZE")
    return "pg_upgrade --link, ANALYZE" if is_later else "opening the folder"


def _upgrade(old: Installation, new: Installation, data: Path, runtime: Path) -> None:
    before = data / "before"
    before.mkdir(mode=0o700)
    (data / "database").rename(before / "database")
    fresh = data / "fresh"
    life.make_cluster(new, fresh, _creation_of(old, before / "database"))
    beside = {
        name: fronts(runtime / name, {key: one for key, one in found.items() if one is not None})
        for name, found in (("old", _tools(old, new=False)), ("new", _tools(new, new=True)))
    }
    command = [
        str(beside["new"] / "pg_upgrade"),
        f"--old-bindir={beside['old']}",
        f"--new-bindir={beside['new']}",
        f"--old-datadir={before / 'database'}",
        f"--new-datadir={fresh / 'database'}",
        f"--socketdir={runtime}",
        f"--username={ACCOUNT}",
        "--link",
    ]
    steps = (
        *Launch().steps(data, runtime, *old.writes, *new.writes),
        *step_down("engine", "PostgreSQL"),
    )
    run_tool("pg_upgrade", command, {}, steps, runtime)
    (fresh / "database").rename(data / "database")
    for left in (before, fresh):
        shutil.rmtree(left)


def _creation_of(old: Installation, database: Path) -> dict[str, Level]:
    """What of a data folder the next one must be made with."""
    said = path.ask(tuple(tool(old, "pg_controldata")), str(database))
    found = dict(re.findall(r"^(.+?):\s+(.+)$", said, re.MULTILINE))
    segment, checksums = found.get("Bytes per WAL segment"), found.get("Data page checksum version")
    if segment is None or checksums is None:
        raise ServerFailed("pg_controldata does not tell how the data folder was made", "is it whole?", said)
    return {"wal_segment_size": f"{int(segment) >> 20}MB", "data_checksums": checksums != "0"}


def _tools(installation: Installation, new: bool) -> dict[str, list[str] | None]:
    """By their names the commands of the programs that `pg_upgrade` runs, None for one that is not here."""
    server = (
        installation.command[-1] if len(installation.command) == 1 else tool(installation, "postgres")[-1]
    )
    found: dict[str, list[str] | None] = {"postgres": [server]}
    for name in (*OF_SERVER, *(OF_NEW if new else ())):
        command = tool(installation, name)
        found[name] = command if Path(command[-1]).is_file() else None
    for name in OF_CLIENT if new else ():
        candidates = programs(installation, SERVER.client, name)
        found[name] = next((one for one in candidates if _is_of(one, installation)), None)
    return found


def _is_of(command: list[str], installation: Installation) -> bool:
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    release = RELEASE.search(said.stdout)
    return release is not None and installation.version.startswith(release[0])


def _missing(of: Installation, new: Installation, names: list[str]) -> EngineMissing:
    return EngineMissing(
        f"PostgreSQL {new.version} takes over data with pg_upgrade, which needs {', '.join(names)} of"
        f" {of.version}",
        NEEDED,
    )
