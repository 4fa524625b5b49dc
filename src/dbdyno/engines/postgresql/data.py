"""Data that come to PostgreSQL: dumps through psql and pg_restore, copies of data folders, and the data of
an older version."""

from __future__ import annotations

import re
import secrets
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dbdyno.driver.passwords import query
from dbdyno.engines.engine import Asked, Server, ending
from dbdyno.engines.postgresql.dumping import (
    REMEDY,
    TOOLS,
    Preparing,
    clients,
    database_named,
    dump_and_restore,
    release_of,
)
from dbdyno.engines.postgresql.psql_text import Script, SegmentKind
from dbdyno.engines.postgresql.server import PORT, SERVER, alone, initialise, make_cluster, start, tool
from dbdyno.engines.server import ACCOUNT, DATABASE, socket_of, url_of_database
from dbdyno.engines.upgrade import STOP_S, run_tool, series_of
from dbdyno.errors import DriverFailed, DynoError, EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell
from dbdyno.host.launch import Launch
from dbdyno.host.namespaces import step_down
from dbdyno.host.process import die_with_parent
from dbdyno.obtain import path
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import fronts, program, programs
from dbdyno.user_data.dump import Dump, text_of
from dbdyno.user_data.feed import Client, environment, feed
from dbdyno.user_data.folder import copy_folder, require_stopped, require_unmoved

MARKS = re.compile(
    rb"^-- PostgreSQL database (cluster )?dump|^-- Dumped (from|by) |^\\restrict |^SELECT pg_catalog\.|"
    rb"^COPY .* FROM stdin;",
    re.MULTILINE,
)
REFUSAL = re.compile(
    r"psql:(?:<stdin>:(?P<line>\d+):)? (?P<message>(?:ERROR|FATAL|error):.*|invalid command.*)"
)
RESTRICTED = "error: backslash commands are restricted; only \\unrestrict is allowed"
STATES = {
    0: "is starting up",
    2: "is a standby that was stopped",
    3: "was shutting down",
    4: "was recovering from a crash",
    5: "was recovering from an archive",
    6: "was in use when its files were copied, or its server was killed",
}
SHUT_DOWN = 1
CONTROL = struct.Struct("<QIIi")
"""The beginning of `global/pg_control`: the system's identifier, the versions of the file and of the
catalogue, and the state."""
OWN_FILES = ("postgresql.conf", "pg_hba.conf", "pg_ident.conf")
NOT_COPIED = frozenset(
    (*OWN_FILES, "postgresql.auto.conf", "postmaster.pid", "postmaster.opts", "log", "pg_log", "core")
)
OF_RECOVERY = ("standby.signal", "recovery.signal", "backup_label", "recovery.conf")
LOCALE = "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
ADOPTION = f"""\
CREATE ROLE {ACCOUNT};
ALTER ROLE {ACCOUNT} SUPERUSER LOGIN;
CREATE DATABASE {DATABASE} {LOCALE};
"""
"""Single-user mode goes on after a statement that fails, as the first does where there is such a role."""
DATABASES_SQL = "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY 1"
TABLES_SQL = (
    "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p')"
    " AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\\_toast%'"
)


def writes(dump: Dump) -> bool:
    return dump.archive or MARKS.search(dump.head) is not None


def require_dump(installation: Installation, dump: Dump) -> None:
    _psql(installation)
    if dump.archive:
        _program(installation, "pg_restore")


def require_folder(version: str, source: Path) -> None:
    format_file = source / "PG_VERSION"
    if not format_file.is_file():
        raise UserError(
            f"{source} is no data folder of PostgreSQL: it holds no PG_VERSION",
            "name the folder that `SHOW data_directory` tells",
        )
    major = format_file.read_text().strip()
    if version and version.split(".")[0] != major:
        raise UserError(
            f"{source} is of PostgreSQL {major}, and the study's server is {version}",
            f"take a server of that version, as postgresql@{major}, or bring a dump",
        )
    running = source / "postmaster.pid"
    if running.is_file():
        first = (running.read_text().split() or ["0"])[0]
        process_id = int(first) if first.isdecimal() else 0
        require_stopped(source, process_id)
    require_unmoved(source)
    control = (source / "global/pg_control").read_bytes()[: CONTROL.size]
    state = CONTROL.unpack(control)[3] if len(control) == CONTROL.size else -1
    if state != SHUT_DOWN or running.is_file():
        told = STATES.get(state, "does not say how it ended")
        if state == SHUT_DOWN:
            told = "has a postmaster.pid"
        raise UserError(
            f"{source} is not of a server that was stopped cleanly: it {told}",
            "start it there, stop it with `pg_ctl stop -m fast`, and bring that folder",
        )
    for name in OF_RECOVERY:
        if (source / name).exists():
            raise UserError(f"{source} has a {name}: it is a backup that is not restored", "restore it first")


def load(
    installation: Installation, server: Server, _data: Path, dump: Dump, database: str, tell: Tell
) -> list[str]:
    psql, socket = _psql(installation), socket_of(server.url)
    into = DATABASE
    if database and not _names_its_own(dump):
        into = database
        if [database] not in query(server.url, DATABASES_SQL):
            query(server.url, f'CREATE DATABASE "{database}" {LOCALE}')

    def client_of(name: str, line: int) -> Client:
        restricted = [f"--command=\\restrict {secrets.token_hex(16)}", "--file=-"]
        return Client([*psql, *_options(socket, name), *restricted], environment(("PG",)), REFUSAL, line)

    preparing = Preparing(server.url, dump.path, client_of)
    with text_of(dump, _restoring(installation, dump)) as text:
        try:
            feed(dump, text, client_of(into, 1), tell, preparing.edit)
        except UserError as refused:
            raise _of_command(refused) from None
    tell("gathering statistics")
    for name in databases(server.url, query):
        # A dump holds none, and rows that were never vacuumed are looked at twice.
        _vacuum(psql, socket, name)
    return preparing.done


def bring_in(installation: Installation, source: Path, data: Path) -> None:
    """The copy gets the configuration that a data folder of Dyno's has: the original's may let others in,
    load libraries, or lead to other files."""
    initialise(installation, data, {})
    made, own = data / "database", data / "configuration"
    own.mkdir()
    for name in OWN_FILES:
        (made / name).rename(own / name)
    shutil.rmtree(made)
    copy_folder(source, made, lambda path: str(path) in NOT_COPIED)
    for name in OWN_FILES:
        (own / name).rename(made / name)
    own.rmdir()


@contextmanager
def adopt(installation: Installation, data: Path) -> Iterator[Mapping[str, Level]]:
    alone(installation, data, "template1", ADOPTION)
    yield {}


def require_recovered(log: str) -> None:
    """`pg_control` has told it already."""


def databases(url: str, asked: Asked) -> list[str]:
    names = [str(row[0]) for row in asked(url, DATABASES_SQL)]
    return [name for name in names if _tables(url_of_database(url, name), asked)]


def settle(_url: str, _asked: Asked) -> list[str]:
    """A folder has its statistics, and a dump got them when it was loaded."""
    return []


def _tables(url: str, asked: Asked) -> int:
    try:
        return int(asked(url, TABLES_SQL)[0][0] or 0)
    except DriverFailed as failed:
        told = f"a database of the folder cannot be opened here: {failed.message}"
        of_locale = "install its locale (`locale -a` lists those here), or bring a dump"
        hint = of_locale if "locale" in failed.message else failed.hint
        raise UserError(told, hint) from None


def _options(socket: Path, database: str) -> list[str]:
    escaped = database.replace("\\", "\\\\").replace("'", "\\'")
    target = f"host={socket.parent} port={PORT} user={ACCOUNT} dbname='{escaped}'"
    return ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--dbname={target}"]


def _names_its_own(dump: Dump) -> bool:
    """Whether the beginning of a dump changes to a database."""
    segments = Script().segments(iter([dump.head]))
    return any(kind is SegmentKind.COMMAND and database_named(text) is not None for kind, text in segments)


def _vacuum(psql: list[str], socket: Path, database: str) -> None:
    command = [*psql, *_options(socket, database), "--command=VACUUM (ANALYZE)"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        env=environment(("PG",)),
        preexec_fn=die_with_parent(),
    )
    if done.returncode:
        raise UserError(f"no statistics of {database}: {done.stderr.strip()}", "are its indexes sound?")


def _restoring(installation: Installation, dump: Dump) -> list[str]:
    """The command that turns an archive into SQL. Tablespaces would lie outside of the data."""
    if not dump.archive:
        return []
    place = [str(dump.path)] if dump.path.is_dir() else []
    return [*_program(installation, "pg_restore"), "--file=-", "--no-tablespaces", *place]


def _psql(installation: Installation) -> list[str]:
    """The first psql that can be restricted. Raises EngineMissing with what obtains one."""
    for command in programs(installation, SERVER.client, "psql"):
        said = subprocess.run([*command, "--help=commands"], capture_output=True, stdin=subprocess.DEVNULL)
        if b"\\restrict " in said.stdout:
            return command
    raise EngineMissing(
        "no psql of this machine can be restricted, and a dump may hold commands that run programs",
        f"`dyno engines fetch {installation.engine}` obtains one; PostgreSQL has it from 13.22, 14.19, 15.14,"
        " 16.10 and 17.6 on",
    )


def _of_command(refused: UserError) -> UserError:
    """What psql refuses, in the words of who did not ask for the restriction."""
    message = refused.message.replace(RESTRICTED, "a command of psql's own is refused")
    return refused if message == refused.message else UserError(message, REMEDY)


def _program(installation: Installation, name: str) -> list[str]:
    return program(installation, SERVER.client, name)


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
    server = start(new, data, runtime, {}, Launch())
    with ending(server, STOP_S):
        for name in databases(server.url, query):
            query(url_of_database(server.url, name), "ANALYZE")
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
    make_cluster(new, fresh, _creation_of(old, before / "database"))
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
