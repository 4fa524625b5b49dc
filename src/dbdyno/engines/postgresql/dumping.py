"""How PostgreSQL takes over data of an older version without `pg_upgrade`, by a dump; and what any dump needs
beside its own statements.

A dump of one database names roles that belong to the whole server, and a database with a locale of another
machine. A newer tool sets what an older server does not know.

psql has commands of its own, which run programs and write files. So Dyno restricts psql with a key that no
dump knows. A change of the database has another psql go on there, and the restrictions of the dump itself are
left out. All of that is done to statements and commands alone: rows and texts are loaded as they are.
"""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dbdyno.driver.passwords import query
from dbdyno.engines.engine import ending
from dbdyno.engines.postgresql import server
from dbdyno.engines.postgresql.psql_text import Script, SegmentKind
from dbdyno.engines.postgresql.server import SERVER
from dbdyno.engines.server import ACCOUNT, DATABASE, ServerProcess, socket_of, url_of_database
from dbdyno.engines.upgrade import STOP_S, series_of
from dbdyno.errors import DriverFailed, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import die_with_parent, how_it_ended, kill_family
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import fronts, programs
from dbdyno.user_data.feed import Client, environment

NAME = rb'(?:"(?:[^"\n]|"")+"|[A-Za-z_][\w$]*)'
MADE = re.compile(rb"CREATE ROLE (%s);" % NAME)
NEEDED = tuple(
    re.compile(pattern % NAME, re.DOTALL)
    for pattern in (
        rb"(?:ALTER .* OWNER TO|GRANT .* TO|REVOKE .* FROM|SET SESSION AUTHORIZATION|"
        rb"CREATE SCHEMA \S+ AUTHORIZATION) (%s)[; ]",
        rb"ALTER DEFAULT PRIVILEGES FOR ROLE (%s) ",
        rb"ALTER DEFAULT PRIVILEGES .* (?:TO|FROM) (%s)[; ]",
    )
)
NO_ROLES = frozenset(("public", "current_user", "session_user", "current_role", "default"))
OF_NEWER = re.compile(rb"SET (transaction_timeout|default_table_access_method|default_toast_compression) = ")
DATABASE_MADE = re.compile(rb"CREATE DATABASE (%s) WITH (.*);" % NAME, re.DOTALL)
LOCALE = re.compile(
    rb" (?:LOCALE_PROVIDER|LOCALE|LC_COLLATE|LC_CTYPE|ICU_LOCALE|TABLESPACE) = (?:'[^']*'|\w+)"
)
RESTRICT = re.compile(rb"\\(?:un)?restrict \w+\r?")
CONNECT = re.compile(
    rb"""\\connect\ (?:([\w$.-]+)|"((?:[^"=/`\\\n]|"")+)"|"""
    rb"""-reuse-previous=on\ "dbname='((?:[^'"\\\n]|\\['\\]|"")*)'")\r?""",
    re.VERBOSE,
)
"""A change of the database as pg_dump and pg_dumpall write it. It leads to no other server."""
LIFTS = b"\\unrestrict"
PROGRAM = re.compile(rb"(?<!\\)\\unrestrict[^\n]*`")
"""The one command that a restricted psql takes. It runs what stands in backquotes, even where the key is
wrong. In data a backslash is doubled."""
REMEDY = "pg_dump writes no such command: was the dump changed? take the command out of a copy of it"


def database_named(command: bytes) -> str | None:
    """The database that a command of psql's changes to; None for any other command."""
    found = CONNECT.fullmatch(command)
    if found is None:
        return None
    name = (found[1] or found[2] or re.sub(rb"\\(.)", rb"\1", found[3])).replace(b'""', b'"')
    return name.decode("utf-8", "surrogateescape")


class Preparing:
    """Looks at a dump on its way, and makes on the server what it takes for granted. `done` tells what.
    `client_of` gives the psql that goes on in a database, from a line of the dump on."""

    def __init__(self, url: str, dump: Path, client_of: Callable[[str, int], Client]) -> None:
        self._url = url_of_database(url, "postgres")
        self._dump, self._client_of = dump, client_of
        self._line, self._unfinished = 1, b""
        self._roles = {str(row[0]) for row in query(self._url, "SELECT rolname FROM pg_roles")}
        known = query(self._url, "SELECT name FROM pg_settings")
        self._settings = {str(row[0]) for row in known}
        self._made: list[str] = []
        self._told: list[str] = []

    @property
    def done(self) -> list[str]:
        made = [f"roles that the dump takes for granted were made: {', '.join(self._made)}"]
        return [*(made if self._made else []), *self._told]

    def edit(self, pieces: Iterator[bytes]) -> Iterator[bytes | Client]:
        """The text as psql gets it, line by line. Raises UserError for a command that runs a program."""
        script, line = Script(), 1
        for kind, text in script.segments(map(self._without_program, pieces)):
            if kind is SegmentKind.STATEMENT:
                yield self._statement(text)
            elif kind is SegmentKind.COMMAND and (database := database_named(text)) is not None:
                script.connected()
                yield self._client_of(database, line)
            elif kind is SegmentKind.OTHER or not RESTRICT.fullmatch(text):
                yield text
            line += text.count(b"\n")

    def _without_program(self, piece: bytes) -> bytes:
        """The piece. Looked for are bytes, whatever they seem to belong to, because a script may have led
        astray who reads it."""
        text = self._unfinished + piece
        found = PROGRAM.search(text)
        if found is not None:
            line = self._line + text.count(b"\n", 0, found.start())
            raise UserError(
                f"{self._dump}:{line}: a command of psql's own is refused, because it runs a program", REMEDY
            )
        self._line += piece.count(b"\n")
        last = text.rpartition(b"\n")[2]
        # Of a line that goes on: the command without its end, or what may be its beginning.
        self._unfinished = LIFTS if LIFTS in last else last[-len(LIFTS) :]
        return piece

    def _statement(self, text: bytes) -> bytes:
        """A statement as psql gets it: one that is left out leaves the ends of its lines."""
        if made := MADE.fullmatch(text):
            self._roles.add(_role_named(made[1]))
        for needed in NEEDED:
            if found := needed.match(text):
                self._require_role(found[1])
        if found := OF_NEWER.match(text):
            return self._setting(text, found[1].decode())
        if found := DATABASE_MADE.fullmatch(text):
            return self._database(text, found[1], found[2])
        return text

    def _require_role(self, name: bytes) -> None:
        role = _role_named(name)
        if (
            role in self._roles
            or role.startswith("pg_")
            or name.decode("utf-8", "replace").lower() in NO_ROLES
        ):
            return
        self._roles.add(role)
        quoted = role.replace('"', '""')
        query(self._url, f'CREATE ROLE "{quoted}"')
        self._made.append(role)

    def _setting(self, statement: bytes, name: str) -> bytes:
        if name in self._settings:
            return statement
        told = f"`SET {name}` was left out, because this server does not know it"
        if told not in self._told:
            self._told.append(told)
        return b"\n" * statement.count(b"\n")

    def _database(self, statement: bytes, name: bytes, options: bytes) -> bytes:
        """The statement, without a locale that is not on this machine. Whether it is there a database of
        another name shows, because psql may still have to drop one of this name."""
        plain = LOCALE.sub(b"", options)
        if plain == options or self._can_make(options) or not self._can_make(plain):
            return statement
        made = b"CREATE DATABASE %s WITH %s;" % (name, plain)
        self._told.append(f"{made.decode('utf-8', 'replace')[:-1]}: its own locale is not on this machine")
        return made + b"\n" * (statement.count(b"\n") - made.count(b"\n"))

    def _can_make(self, options: bytes) -> bool:
        tried = f"dyno_locale_{secrets.token_hex(4)}"
        try:
            query(self._url, f"CREATE DATABASE {tried} WITH {options.decode('utf-8', 'replace')}")
        except DriverFailed:
            return False
        query(self._url, f"DROP DATABASE {tried}")
        return True


def _role_named(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    return text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()


TOOLS = ("pg_dumpall", "pg_dump", "psql")
RELEASE = re.compile(r"\d+\.\d+")
REFUSAL = re.compile(r"^psql:<stdin>:\d+: (?:ERROR|FATAL|error): +(.*)$", re.MULTILINE)
OWN = {f'role "{ACCOUNT}" already exists', f'database "{DATABASE}" already exists'}
"""A data folder of Dyno's has them from its making, and a dump holds them too."""


def release_of(command: Sequence[str]) -> str:
    """The version of one of PostgreSQL's programs, as it tells it; empty where it tells none."""
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = RELEASE.search(said.stdout)
    return found[0] if found else ""


def clients(old: Installation, new: Installation) -> tuple[str, Mapping[str, Sequence[str]]] | None:
    """The newest release whose clients read the old server and write for the new one, with their commands;
    None where there is none. A dump is promised to load into servers of its own version and later ones."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in TOOLS:
        for command in programs(new, SERVER.client, name):
            found.setdefault(release_of(command), {}).setdefault(name, command)
    whole = [
        release
        for release, commands in found.items()
        if set(commands) == set(TOOLS)
        and series_of(old.version, 1) <= series_of(release, 1) <= series_of(new.version, 1)
    ]
    newest = max(whole, key=lambda release: series_of(release, 2), default=None)
    return None if newest is None else (newest, found[newest])


def dump_and_restore(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    """Moves the data aside, and makes a cluster of the new version of them; what was done, in words.
    Raises ServerFailed where either tool fails, or a statement is refused."""
    chosen = clients(old, new)
    assert chosen is not None, "asked for only where the clients are here"
    release, commands = chosen
    before, fresh = data / "before", data / "fresh"
    before.mkdir(mode=0o700)
    (data / "database").rename(before / "database")
    server.initialise(new, fresh, creation)
    beside = fronts(runtime / "clients", commands)
    source, target = _started(old, before, runtime / "old"), _started(new, fresh, runtime / "new")
    with ending(source, STOP_S), ending(target, STOP_S):
        _pour(beside, source.url, target.url)
    (fresh / "database").rename(data / "database")
    for left in (before, fresh):
        shutil.rmtree(left)
    return f"pg_dumpall and psql {release}"


def _started(installation: Installation, data: Path, runtime: Path) -> ServerProcess:
    runtime.mkdir(mode=0o700)
    return server.start(installation, data, runtime, {}, Launch())


def _pour(clients: Path, source: str, target: str) -> None:
    reading = [str(clients / "pg_dumpall"), *_to(source)]
    writing = [str(clients / "psql"), "--no-psqlrc", "--quiet", *_to(target), "--file=-"]
    with tempfile.TemporaryFile() as of_dump, tempfile.TemporaryFile() as of_restore:
        with (
            _running(reading, subprocess.DEVNULL, subprocess.PIPE, of_dump) as dump,
            _running(writing, dump.stdout, subprocess.DEVNULL, of_restore) as restore,
        ):
            assert dump.stdout is not None
            # Else the dump would not notice that its reader is gone.
            dump.stdout.close()
            codes = restore.wait(), dump.wait()
        refused = [line for line in REFUSAL.findall(_text(of_restore)) if line not in OWN]
        if refused:
            raise ServerFailed(
                f"psql could not restore the dump: {refused[0]}", "look at what the dump holds"
            )
        for title, code, said in zip(("psql", "pg_dumpall"), codes, (of_restore, of_dump), strict=True):
            if code:
                told = _text(said).strip().splitlines()
                raise ServerFailed(
                    f"{title} {how_it_ended(code)}{f': {told[-1]}' if told else ''}",
                    "look at its output, which follows",
                    _text(said),
                )


def _to(url: str) -> list[str]:
    return [f"--dbname=host={socket_of(url).parent} port={server.PORT} user={ACCOUNT} dbname=postgres"]


@contextmanager
def _running(
    command: Sequence[str], source: IO[bytes] | int | None, target: int, errors: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        list(command),
        stdin=source,
        stdout=target,
        stderr=errors,
        env=environment(("PG",)),
        start_new_session=True,
        preexec_fn=die_with_parent(),
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            kill_family(child)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
