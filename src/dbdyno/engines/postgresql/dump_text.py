"""What a dump of PostgreSQL needs beside its own statements, done just before psql gets to them.

A dump of one database names roles that belong to the whole server, and a database with a locale of another
machine. A newer tool sets what an older server does not know.

psql has commands of its own, which run programs and write files. So Dyno restricts psql with a key that no
dump knows, lifts that for a change of the database alone, and leaves out the restrictions of the dump itself.
"""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.driver.query import query
from dbdyno.engines.server import within
from dbdyno.errors import DriverFailed, UserError

NAME = rb'("(?:[^"\n]|"")+"|[A-Za-z_][\w$]*)'
NAMED = re.compile(
    rb"^(?:CREATE ROLE (?P<made>%s);$|"
    rb"(?:ALTER .* OWNER TO|GRANT .* TO|REVOKE .* FROM|ALTER DEFAULT PRIVILEGES FOR ROLE|"
    rb"SET SESSION AUTHORIZATION|CREATE SCHEMA \S+ AUTHORIZATION) (?P<needed>%s)[; ])"
    % (NAME.replace(b"(", b"(?:", 1), NAME.replace(b"(", b"(?:", 1)),
    re.MULTILINE,
)
NO_ROLES = frozenset(("public", "current_user", "session_user", "current_role", "default"))
OF_NEWER = re.compile(
    rb"^SET (transaction_timeout|default_table_access_method|default_toast_compression) = ", re.MULTILINE
)
DATABASE = re.compile(
    rb"(?<=; Type: DATABASE)([^\n]*\n--\n\n)(CREATE DATABASE (\S+) WITH ([^\n]*);)$", re.MULTILINE
)
LOCALE = re.compile(
    rb" (?:LOCALE_PROVIDER|LOCALE|LC_COLLATE|LC_CTYPE|ICU_LOCALE|TABLESPACE) = (?:'[^']*'|\w+)"
)
RESTRICT = re.compile(rb"^\\(?=(?:un)?restrict \w+\r?$)", re.MULTILINE)
CONNECT = re.compile(
    rb"""^\\connect\ (?:[\w$.-]+|"(?:[^"=/`\\\n]|"")+"|"""
    rb"""-reuse-previous=on\ "dbname='(?:[^'"\\\n]|\\['\\]|"")*'")(?=\r?$)""",
    re.MULTILINE | re.VERBOSE,
)
"""A change of the database as pg_dump and pg_dumpall write it. It leads to no other server."""
LIFTS = b"\\unrestrict"
PROGRAM = re.compile(rb"(?<!\\)\\unrestrict[^\n]*`")
"""The one command that a restricted psql takes. It runs what stands in backquotes, even where the key is
wrong. In data a backslash is doubled."""
REMEDY = "pg_dump writes no such command: was the dump changed? take the command out of a copy of it"


class Preparing:
    """Looks at a dump's lines on their way, and makes on the server what they take for granted. `done` tells
    what. `key` is that of psql's restriction."""

    def __init__(self, url: str, dump: Path, key: str) -> None:
        self._url = within(url, "postgres")
        self._dump, self._key = dump, key
        self._line, self._unfinished = 1, b""
        self._connects: list[int] = []
        self._roles = {str(row[0]) for row in query(self._url, "SELECT rolname FROM pg_roles")}
        known = query(self._url, "SELECT name FROM pg_settings")
        self._settings = {str(row[0]) for row in known}
        self._made: list[str] = []
        self._told: list[str] = []

    @property
    def done(self) -> list[str]:
        made = [f"roles that the dump takes for granted were made: {', '.join(self._made)}"]
        return [*(made if self._made else []), *self._told]

    def edit(self, piece: bytes, begins: bool) -> bytes:
        """The piece as psql gets it. Raises UserError for a command that runs a program."""
        edited, first = self._edited(piece) if begins else piece, self._line
        self._require_no_program(edited)
        if not begins:
            return edited
        found = CONNECT.finditer(edited)
        self._connects += [first + edited.count(b"\n", 0, one.start()) for one in found]
        key = self._key.encode()
        return CONNECT.sub(rb"\\unrestrict %s\n\g<0>\n\\restrict %s" % (key, key), edited)

    def line_of(self, number: int) -> int:
        """The dump's line that is psql's line of that number: a change of the database takes psql three."""
        added = 0
        for line in self._connects:
            added += min(max(number - (line + added), 0), 2)
        return number - added

    def _edited(self, lines: bytes) -> bytes:
        for found in NAMED.finditer(lines):
            self._role(found["made"] or found["needed"], is_made=found["made"] is not None)
        lines = DATABASE.sub(self._database, lines)
        lines = OF_NEWER.sub(self._setting, lines)
        return RESTRICT.sub(rb"-- ", lines)

    def _require_no_program(self, piece: bytes) -> None:
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

    def _role(self, name: bytes, is_made: bool) -> None:
        text = name.decode("utf-8", "replace")
        role = text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()
        if role in self._roles or role.startswith("pg_") or text.lower() in NO_ROLES:
            return
        self._roles.add(role)
        if not is_made:
            quoted = role.replace('"', '""')
            query(self._url, f'CREATE ROLE "{quoted}"')
            self._made.append(role)

    def _setting(self, found: re.Match[bytes]) -> bytes:
        name = found[1].decode()
        if name in self._settings:
            return found[0]
        told = f"`SET {name}` was left out, because this server does not know it"
        if told not in self._told:
            self._told.append(told)
        return b"-- " + found[0]

    def _database(self, found: re.Match[bytes]) -> bytes:
        """Makes the database, without its locale where that is not on this machine."""
        statement = found[2].decode("utf-8", "replace")
        try:
            query(self._url, statement)
        except DriverFailed:
            plain = f"CREATE DATABASE {found[3].decode()} WITH {LOCALE.sub(b'', found[4]).decode()}"
            try:
                query(self._url, plain)
            except DriverFailed:
                # psql meets the same, and says where.
                return found[0]
            self._told.append(f"{plain}: its own locale is not on this machine")
        return found[1] + b"-- " + found[2]
