"""How PostgreSQL takes over the data of an older version: `pg_upgrade` with links, or a dump where its tools
are not here; then `ANALYZE`, because neither brings the planner's statistics before 18. Within one major
version the server opens the folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver.query import query
from dbdyno.engines.engine import ending
from dbdyno.engines.postgresql import life
from dbdyno.engines.postgresql.dumping import TOOLS, clients, dump_and_restore, release_of
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
NEEDED = (
    "an installation of PostgreSQL as Debian's packages have it holds all of these programs; npm's packages"
    " hold none"
)


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 1)


def lacking(old: Installation, new: Installation) -> DynoError | None:
    if series(old.version) == series(new.version):
        return None
    lacks = _lacks(old, new)
    if lacks is None or clients(old, new) is not None:
        return None
    names, of = lacks
    return EngineMissing(
        f"PostgreSQL {new.version} takes over data with pg_upgrade, which needs {', '.join(names)} of"
        f" {of.version}, or by a dump, which needs {', '.join(TOOLS)} of one version from"
        f" {series(old.version)[0]} to {series(new.version)[0]}",
        NEEDED,
    )


def take_over(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    by = _renewed(old, new, data, runtime, creation)
    server = life.start(new, data, runtime, {}, Launch())
    with ending(server, STOP_S):
        for name in databases(server.url, query):
            query(within(server.url, name), "ANALYZE")
    return by


def _renewed(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    if series(old.version) == series(new.version):
        return "opening the folder"
    if _lacks(old, new) is not None:
        return f"{dump_and_restore(old, new, data, runtime, creation)}, ANALYZE"
    _upgrade(old, new, data, runtime)
    return "pg_upgrade --link, ANALYZE"


def _lacks(old: Installation, new: Installation) -> tuple[list[str], Installation] | None:
    """What `pg_upgrade` lacks, and of which of the two; None where it lacks nothing."""
    for one in (old, new):
        absent = [name for name, command in _tools(one, new=one is new).items() if command is None]
        if absent:
            return absent, one
    return None


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
    release = release_of(command)
    return bool(release) and installation.version.startswith(release)
