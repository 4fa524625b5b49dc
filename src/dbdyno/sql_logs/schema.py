"""The tables that a dump makes, as far as new rows need them: columns, unique keys, foreign keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dbdyno.sql_logs.digest import Dialect, Token, TokenKind, between_commas, tokens

CHUNK_BYTES = 1 << 20
KEPT_BYTES = 64
"""Longer than what a definition begins with, so that one is found across two chunks."""
DEFINITION_BYTES_MOST = 4 << 20
"""What is longer and has no end is no definition."""
TABLES_MOST = 100_000
"""Further tables are passed over, so that a dump of any size fits into memory."""
BEGINS = re.compile(
    rb"\n(?:CREATE (?:UNLOGGED )?TABLE|ALTER TABLE|CREATE UNIQUE INDEX|COPY)\s", re.IGNORECASE
)
ENDS = re.compile(rb";[ \t\r]*(?=\n)")
ENDS_COPY = re.compile(rb"\n\\\.\r?(?=\n)")
NO_COLUMN = frozenset(
    {
        "PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "FULLTEXT", "SPATIAL", "CHECK",
        "EXCLUDE", "LIKE", "PERIOD",
    }
)  # fmt: skip
"""What an item of a CREATE TABLE begins with that defines no column."""


class DumpSource(Protocol):
    """Where a dump's text comes from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class ColumnType:
    """A type in lower case, its length where one is written, and whether the server numbers its rows."""

    name: str = ""
    length: int | None = None
    numbered: bool = False


@dataclass
class SqlTable:
    """A table; names are in lower case. `keys` are the columns of each unique key, and `parents` the tables
    and columns that foreign keys lead to, as they are written."""

    columns: dict[str, ColumnType] = field(default_factory=dict)
    keys: list[tuple[str, ...]] = field(default_factory=list)
    parents: dict[str, tuple[str, str]] = field(default_factory=dict)


Schema = dict[str, SqlTable]
"""Tables by their names in lower case, without the database or the schema that they are in."""


@dataclass
class SchemaReader:
    """Takes in the files of a dump, whose definitions may be spread over them."""

    dialect: Dialect
    found: Schema = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)

    @property
    def schema(self) -> Schema:
        """The tables. Of those with one name, in different databases, none is known."""
        return {name: table for name, table in self.found.items() if name not in self.twice}

    def take(self, source: DumpSource) -> None:
        """Reads one file to its end."""
        for text in _definitions(source):
            parts = [token for token in tokens(text, self.dialect) if token.kind is not TokenKind.BLANK]
            words = [token.text.upper() for token in parts[:3]]
            if words[0] == "ALTER":
                _alter(self.found, parts[2:])
            elif words[1:] == ["UNIQUE", "INDEX"]:
                _index(self.found, parts[3:])
            else:
                name, rest = _named(parts[words.index("TABLE") + 1 :])
                self.twice |= {name} & self.found.keys()
                if len(self.found) < TABLES_MOST:
                    self.found[name] = _created(rest)


def plain_name(name: str) -> str:
    """A name without its quotes, in lower case."""
    quote = name[:1]
    if quote in ('"', "`"):
        name = name[1:].removesuffix(quote).replace(quote * 2, quote)
    return name.lower()


def _definitions(source: DumpSource) -> Iterator[str]:
    """The statements that define tables and their keys. Rows are passed over."""
    text, copying, ended = b"\n", False, False
    while not ended:
        chunk = source.read(CHUNK_BYTES)
        text, ended = text + (chunk or b"\n"), not chunk
        while True:
            if copying and (end := ENDS_COPY.search(text)) is not None:
                text, copying = text[end.end() :], False
            begin = None if copying else BEGINS.search(text)
            end = ENDS.search(text, begin.end()) if begin is not None else None
            if begin is None or end is None:
                waits = begin is not None and len(text) - begin.start() < DEFINITION_BYTES_MOST
                text = text[begin.start() :] if begin is not None and waits else text[-KEPT_BYTES:]
                break
            statement, text = text[begin.start() + 1 : end.start()], text[end.end() :]
            copying = statement[:4].upper() == b"COPY"
            if not copying:
                yield statement.decode("utf-8", "replace")


def _named(parts: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    """A table's name, without the database or schema before it, and what follows."""
    place = 0
    while parts[place : place + 1] and parts[place].text.upper() in ("IF", "NOT", "EXISTS", "ONLY"):
        place += 1
    while len(parts) > place + 2 and parts[place + 1].text == ".":
        place += 2
    return (plain_name(parts[place].text) if parts[place:] else ""), parts[place + 1 :]


def _created(parts: Sequence[Token]) -> SqlTable:
    table = SqlTable()
    for item in between_commas(_within(parts)):
        _take(table, item)
    return table


def _alter(found: Schema, parts: Sequence[Token]) -> None:
    name, rest = _named(parts)
    table = found.get(name)
    for item in between_commas(rest) if table is not None else ():
        words = [token.text.upper() for token in item]
        if table is None or not words:
            continue
        if words[0] == "ADD" and len(words) > 1 and words[1] in NO_COLUMN:
            _take(table, item[1:])
        elif words[:2] == ["ALTER", "COLUMN"] and len(words) > 3:
            column = plain_name(item[2].text)
            if "NEXTVAL" in words or "IDENTITY" in words:
                known = table.columns.get(column, ColumnType())
                table.columns[column] = ColumnType(known.name, known.length, numbered=True)


def _index(found: Schema, parts: Sequence[Token]) -> None:
    """`name ON table USING btree (columns)`."""
    words = [token.text.upper() for token in parts]
    if "ON" not in words:
        return
    name, rest = _named(parts[words.index("ON") + 1 :])
    if name in found:
        _add_key(found[name], _within(rest))


def _take(table: SqlTable, item: Sequence[Token]) -> None:
    """An item of a CREATE TABLE: a column, or a key."""
    words = [token.text.upper() for token in item]
    if words[:1] == ["CONSTRAINT"]:
        named = words[1:2] and words[1] not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
        item, words = (item[2:], words[2:]) if named else (item[1:], words[1:])
    if not words:
        return
    if words[0] in ("PRIMARY", "UNIQUE"):
        _add_key(table, _within(item))
    elif words[0] == "FOREIGN" and "REFERENCES" in words:
        after = words.index("REFERENCES")
        own, (_, rest) = _columns(table, _within(item[:after])), _named(item[after + 1 :])
        others = [token for token in _within(rest) if token.kind is TokenKind.NAME]
        if len(own) == len(others) == 1:
            written = "".join(token.text for token in item[after + 1 :]).partition("(")[0]
            table.parents[own[0]] = (written, others[0].text)
        else:
            table.parents |= dict.fromkeys(own, ("", ""))
    elif words[0] not in NO_COLUMN:
        column = plain_name(item[0].text)
        table.columns[column] = _type(item[1:], words[1:])
        if "PRIMARY" in words[1:] or "UNIQUE" in words[1:]:
            table.keys.append((column,))


def _type(item: Sequence[Token], words: Sequence[str]) -> ColumnType:
    length = item[2].text if len(item) > 2 and item[1].text == "(" else ""
    if len(item) > 3 and words[:2] == ["CHARACTER", "VARYING"] and item[2].text == "(":
        length = item[3].text
    name = plain_name(item[0].text) if item else ""
    numbered = "serial" in name or bool({"AUTO_INCREMENT", "NEXTVAL", "IDENTITY"} & {*words})
    return ColumnType(name, int(length) if length.isdecimal() else None, numbered)


def _add_key(table: SqlTable, parts: Sequence[Token]) -> None:
    if columns := _columns(table, parts):
        table.keys.append(columns)


def _columns(table: SqlTable, parts: Sequence[Token]) -> tuple[str, ...]:
    """The columns that a key names, also those within an expression."""
    named = [plain_name(token.text) for token in parts if token.kind is TokenKind.NAME]
    return tuple(dict.fromkeys(name for name in named if name in table.columns))


def _within(parts: Sequence[Token]) -> Sequence[Token]:
    """What stands in the first parentheses."""
    depth, begin = 0, 0
    for place, token in enumerate(parts):
        if token.text == "(":
            depth += 1
            begin = place + 1 if depth == 1 else begin
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                return parts[begin:place]
    return parts[begin:] if depth else ()
