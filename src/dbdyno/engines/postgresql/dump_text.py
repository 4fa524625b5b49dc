"""What a dump of PostgreSQL needs beside its own statements, done just before psql gets to them.

A dump of one database names roles that belong to the whole server, and a database with a locale of another
machine. A newer tool sets what an older server does not know.

psql has commands of its own, which run programs and write files. So Dyno restricts psql with a key that no
dump knows. A change of the database has another psql go on there, and the restrictions of the dump itself are
left out. All of that is done to statements and commands alone: rows and texts are loaded as they are.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from dbdyno.driver.passwords import query
from dbdyno.engines.postgresql.psql_text import Kind, Script
from dbdyno.engines.server import within
from dbdyno.errors import DriverFailed, UserError
from dbdyno.user_data.feed import Client

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
DATABASE = re.compile(rb"CREATE DATABASE (%s) WITH (.*);" % NAME, re.DOTALL)
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
        self._url = within(url, "postgres")
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
            if kind is Kind.STATEMENT:
                yield self._statement(text)
            elif kind is Kind.COMMAND and (database := database_named(text)) is not None:
                script.connected()
                yield self._client_of(database, line)
            elif kind is Kind.OTHER or not RESTRICT.fullmatch(text):
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
        if found := DATABASE.fullmatch(text):
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
