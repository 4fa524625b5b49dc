"""Data that come to MariaDB: a user's dumps, copies of data folders, and the data of an older version.

MySQL's are taken in the same way but for what `mysql/data.py` says, so most of this serves both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dbdyno.driver.passwords import query
from dbdyno.engines.engine import Asked, Server, ending
from dbdyno.engines.mariadb.server import SERVER, start
from dbdyno.engines.server import ACCOUNT, DATABASE, socket_of
from dbdyno.engines.upgrade import STOP_S, run_tool, series_of
from dbdyno.errors import DynoError, EngineMissing, UserError
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell
from dbdyno.host.launch import Launch
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import fronts, program, programs
from dbdyno.user_data.dump import Dump, text_of
from dbdyno.user_data.feed import Client, environment, feed
from dbdyno.user_data.folder import COPY_IT, copy_folder, holder_of, require_stopped, require_unmoved

MARKS = re.compile(
    rb"^-- (MariaDB|MySQL) dump |^/\*M?!\d{5,6}[ \\-]|^-- Server version\t|^# MySQL dump|"
    rb"^-- phpMyAdmin SQL Dump|^\) ENGINE=\w+",
    re.MULTILINE,
)
"""What the tools of both servers write at the beginning of a dump."""
TEXTS = re.compile(
    rb"""'(?:[^'\\]|\\.|'')*+(?:'|\Z)|"(?:[^"\\]|\\.|"")*+(?:"|\Z)|`[^`]*(?:`|\Z)|(?:--(?=\s)|\#)[^\n]*|"""
    rb"""/\*(?!M?!).*?(?:\*/|\Z)""",
    re.DOTALL,
)
"""What only looks like a statement: texts, names and comments. One that a server carries out is none."""
NAMES_ITS_OWN = re.compile(rb"^(CREATE DATABASE|USE) ", re.MULTILINE | re.IGNORECASE)
REFUSAL = re.compile(r"ERROR (?:\d+ \(\w+\) )?at line (?P<line>\d+)[^:]*: (?P<message>.*)")
CRASHED = re.compile(
    r"Starting crash recovery|not shut down normally|was not shut down cleanly|not properly closed|"
    r"Aria engine: starting recovery"
)
UPGRADED = ("mariadb_upgrade_info", "mysql_upgrade_info")
ADOPTION = f"""\
CREATE OR REPLACE USER {ACCOUNT}@localhost IDENTIFIED VIA mysql_native_password USING '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS {DATABASE};
"""
NOT_COPIED = re.compile(
    r"(.*\.(pid|sock|err)|auto\.cnf|mysqld-auto\.cnf|.*master.*\.info|relay-log.*|tc\.log)"
)
"""What tells of another server's life, has settings of its own, or would have it replicate."""
OF_THE_SERVER = "('mysql', 'information_schema', 'performance_schema', 'sys')"
TABLES_SQL = (
    f"SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_schema NOT IN {OF_THE_SERVER}"
)
DEFINERS_SQL = """\
SELECT DISTINCT definer FROM (
    SELECT definer FROM information_schema.views UNION SELECT definer FROM information_schema.routines
    UNION SELECT definer FROM information_schema.triggers UNION SELECT definer FROM information_schema.events
) AS all_of_them WHERE definer NOT IN (SELECT CONCAT(user, '@', host) FROM mysql.user)"""


def writes(dump: Dump) -> bool:
    return MARKS.search(dump.head) is not None


def require_dump(installation: Installation, dump: Dump) -> None:
    _client(installation, SERVER.client)
    require_text(dump)


def require_text(dump: Dump) -> None:
    if dump.archive:
        raise UserError(f"{dump.path} is an archive of pg_dump", "write the dump as SQL")


def require_folder(version: str, source: Path) -> None:
    require_family(source)
    if (source / "mysql.ibd").exists():
        raise UserError(f"{source} is a data folder of MySQL, not of MariaDB", 'write engine = "mysql"')
    require_version(version, source, _version_of(source), "MariaDB")


def load(
    installation: Installation, server: Server, _data: Path, dump: Dump, database: str, tell: Tell
) -> list[str]:
    return loaded(_client(installation, SERVER.client), server, dump, database, tell)


def bring_in(_installation: Installation, source: Path, data: Path) -> None:
    data.mkdir(mode=0o700)
    (data / "temporary").mkdir()
    copy_folder(source, data / "database", lambda path: NOT_COPIED.fullmatch(str(path)) is not None)


@contextmanager
def adopt(_installation: Installation, data: Path) -> Iterator[Mapping[str, Level]]:
    with by_statements(data, ADOPTION) as first:
        yield first


def require_recovered(log: str) -> None:
    found = next((line for line in log.splitlines() if CRASHED.search(line)), None)
    if found is not None:
        reason = re.sub(r"^.*?\] ", "", found).strip()
        raise UserError(
            f"the server of the data folder was not stopped cleanly: {reason}",
            "start it there, stop it cleanly, and bring that folder",
        )


def databases(url: str, asked: Asked) -> list[str]:
    return sorted(str(row[0]) for row in asked(url, TABLES_SQL))


def settle(url: str, asked: Asked) -> list[str]:
    """Views, routines and triggers run with the rights of who defined them, who must be there."""
    missing = sorted(str(row[0]) for row in asked(url, DEFINERS_SQL))
    for definer in missing:
        name, _, host = definer.rpartition("@")
        account = f"{_quoted(name)}@{_quoted(host)}"
        asked(url, f"CREATE USER IF NOT EXISTS {account} ACCOUNT LOCK")
        asked(url, f"GRANT ALL PRIVILEGES ON *.* TO {account}")
    if not missing:
        return []
    return [f"accounts that nobody can use were made for definers: {', '.join(missing)}"]


def loaded(command: list[str], server: Server, dump: Dump, database: str, tell: Tell) -> list[str]:
    """Has a client load the dump. In its binary mode it takes no commands of its own from the dump but
    DELIMITER, so a dump can neither run programs nor read files of this machine."""
    into = DATABASE
    if database and not NAMES_ITS_OWN.search(TEXTS.sub(b"''", dump.head)):
        into = database
        query(server.url, f"CREATE DATABASE IF NOT EXISTS `{database}`")
    options = [
        "--no-defaults",
        "--batch",
        "--binary-mode",
        "--default-character-set=utf8mb4",
        f"--socket={socket_of(server.url)}",
        f"--user={ACCOUNT}",
        "--max-allowed-packet=1G",
        "--local-infile=0",
        f"--database={into}",
    ]
    client = Client([*command, *options], environment(("MYSQL", "MARIADB")), REFUSAL)
    with text_of(dump) as text:
        feed(dump, text, client, tell)
    return []


@contextmanager
def by_statements(data: Path, statements: str) -> Iterator[Mapping[str, Level]]:
    """The settings with which a server runs these statements before it lets anybody in."""
    place = data / "adoption.sql"
    place.write_text(statements)
    try:
        yield {"init_file": str(place)}
    finally:
        place.unlink()


def require_family(source: Path) -> None:
    """Raises UserError where a folder is not that of a server of this kind, or where one has it."""
    if not (source / "ibdata1").is_file() or not (source / "mysql").is_dir():
        raise UserError(
            f"{source} is no data folder of this engine: it holds no ibdata1 and no folder mysql",
            "name the folder that the server has as `datadir`",
        )
    require_unmoved(source)
    for name in ("ibdata1", "aria_log_control"):
        if (source / name).is_file():
            require_stopped(source, holder_of(source / name))
    for left in source.glob("*.pid"):
        text = left.read_text().strip()
        require_stopped(source, int(text) if text.isdecimal() else 0)
    elsewhere = next(source.rglob("*.isl"), None)
    if elsewhere is not None:
        raise UserError(f"{elsewhere} leads to a table outside of the folder", COPY_IT)


def require_version(wanted: str, source: Path, found: str, title: str) -> None:
    """Raises UserError where the folder was last used by another release series, as `11.8`."""
    if wanted and found and _series(wanted) != _series(found):
        raise UserError(
            f"{source} is of {title} {found}, and the study's server is {wanted}",
            "take a server of that version, or bring a dump",
        )


def _series(version: str) -> list[str]:
    return re.findall(r"\d+", version)[:2]


def _client(installation: Installation, recipe: debian.DebianRecipe) -> list[str]:
    return program(installation, recipe, "mariadb", "mysql")


def _version_of(source: Path) -> str:
    """What the server last wrote about the version; empty where it never did."""
    for name in UPGRADED:
        if (source / name).is_file():
            return (source / name).read_text(errors="replace").strip("\x00\n ")
    return ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


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
    server = start(new, data, runtime, creation, Launch())
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
