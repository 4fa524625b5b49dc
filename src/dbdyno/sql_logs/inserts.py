"""INSERTs whose keys the log tells: drawn anew, because rows with the log's own keys are there after the
first of them, or in the data already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbdyno.sql_logs.digest import PLACE, Dialect, Token, TokenKind, between_commas, tokens
from dbdyno.sql_logs.draw import FILL_IN, Draw, draw
from dbdyno.sql_logs.groups import Group, Shape
from dbdyno.sql_logs.keys import Beyond, SqlColumn
from dbdyno.sql_logs.schema import ColumnType, Schema, SqlTable, plain_name

WHOLE = frozenset({"mediumint", "int", "integer", "bigint", "int4", "int8", "serial", "bigserial"})
"""Types that hold a sequence for longer than a run lasts."""
TEXTS = frozenset({"char", "varchar", "character", "text", "citext", "tinytext", "mediumtext", "longtext"})
UUID_LENGTH, TEXT_LEAST = 36, 12
"""Random letters of the shorter length do not meet one another either."""
TAKES_ROWS_THAT_EXIST = frozenset({"IGNORE", "CONFLICT", "DUPLICATE"})
FOREIGN = "each as likely as the others, because a foreign key leads there"


@dataclass(frozen=True)
class InsertedValue:
    """What an INSERT writes into a column: the value of a place, or an expression."""

    place: int | None


@dataclass(frozen=True)
class Insert:
    """An INSERT with its rows, a cell for each of its `columns`, which are empty where it names none."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[InsertedValue, ...], ...]

    def written(self, table: SqlTable, dialect: Dialect) -> tuple[str, ...]:
        """The names of its columns as a statement writes them."""
        quote = "`" if dialect is Dialect.MYSQL else '"'
        return self.columns or tuple(f"{quote}{name}{quote}" for name in table.columns)


def insert_of(shape: Shape, dialect: Dialect) -> Insert | None:
    """What a statement inserts; None for one that is no INSERT of values, and for one that leaves out or
    changes a row whose keys are there."""
    every = tokens(PLACE.join(shape.pieces), dialect)
    parts: Sequence[Token] = [token for token in every if token.kind is not TokenKind.BLANK]
    words = [token.text.upper() for token in parts]
    if words[:1] != ["INSERT"] or TAKES_ROWS_THAT_EXIST & {*words}:
        return None
    at = words.index("INTO") + 1 if "INTO" in words[:4] else 1
    end = at + 1
    while words[end : end + 1] == ["."]:
        end += 2
    table, rest = "".join(token.text for token in parts[at:end]), parts[end:]
    columns, rest = _listed(rest)
    if not rest or rest[0].text.upper() not in ("VALUES", "VALUE", "SET"):
        return None
    places = _Places(parts[: len(parts) - len(rest)])
    if rest[0].text.upper() == "SET":
        pairs = [(item[0].text, places.cell(item[2:])) for item in between_commas(rest[1:]) if len(item) > 2]
        return Insert(table, tuple(name for name, _ in pairs), (tuple(cell for _, cell in pairs),))
    rows = [tuple(places.cell(item) for item in between_commas(row)) for row in _rows(rest[1:])]
    return Insert(table, columns, tuple(rows)) if rows else None


class _Places:
    """Counts the places of a statement, so that each cell knows its own."""

    def __init__(self, before: Sequence[Token]) -> None:
        self._next = _count(before)

    def cell(self, item: Sequence[Token]) -> InsertedValue:
        first, inside = self._next, _count(item)
        self._next += inside
        is_value = bool(item) and item[0].text == PLACE and (len(item) == 1 or item[1].text == "::")
        return InsertedValue(first if inside == 1 and is_value else None)


def _count(parts: Sequence[Token]) -> int:
    return sum(token.text == PLACE for token in parts)


def _listed(parts: Sequence[Token]) -> tuple[tuple[str, ...], Sequence[Token]]:
    """The columns in the first parentheses, and what follows; none where VALUES comes first."""
    if not parts or parts[0].text != "(":
        return (), parts
    end = next((place for place, token in enumerate(parts) if token.text == ")"), len(parts))
    return tuple(token.text for token in parts[1:end] if token.kind is TokenKind.NAME), parts[end + 1 :]


def _rows(parts: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What stands in each pair of outer parentheses, up to what follows the rows."""
    depth, begin = 0, 0
    for place, token in enumerate(parts):
        if depth == 0 and token.text not in ("(", ","):
            return
        if token.text == "(":
            depth += 1
            begin = place + 1 if depth == 1 else begin
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                yield parts[begin:place]


def draw_new_keys(groups: Sequence[Group], schema: Schema | None, dialect: Dialect, source: str) -> None:
    """Has the INSERTs among statements draw keys that no row has, as far as the `schema` tells which columns
    are keys. Without one `source` is what holds none. Notes with each shape what it draws, and which keys it
    may meet nevertheless."""
    sites = list[tuple[Shape, int, SqlColumn]]()
    for shape in [shape for group in groups for shape, _ in group.lengths]:
        insert = insert_of(shape, dialect)
        if insert is None:
            continue
        table = None if schema is None else schema.get(plain_name(insert.table.rpartition(".")[2]))
        if schema is None:
            shape.may_meet = (f"{source} does not tell its keys",)
        elif table is None:
            shape.may_meet = (f"{source} has no table {_shown(insert.table)}, or several",)
        elif not insert.columns and any(len(row) != len(table.columns) for row in insert.rows):
            shape.may_meet = (f"it has other columns than {_shown(insert.table)} of {source}",)
        else:
            sites += _OfTable(shape, insert, table, dialect).sites()
    _number(sites)


def _number(sites: Sequence[tuple[Shape, int, SqlColumn]]) -> None:
    """Gives each place of a column every n-th number, so that no two of them draw the same one."""
    totals, seen = Counter(_same(column) for _, _, column in sites), Counter[tuple[str, str]]()
    for shape, place, column in sites:
        beyond, key = Beyond(column), _same(column)
        total, number = totals[key], seen[key]
        seen[key] += 1
        expression = f"sequence(:{beyond.name})"
        if total > 1:
            expression = f":{beyond.name} + {number} + {total} * sequence(0)"
        words = f"numbers beyond the largest {column.words} of the data, each once"
        shape.new[place] = Draw(expression, words, asked=beyond)


def _same(column: SqlColumn) -> tuple[str, str]:
    """A column, however statements write it."""
    return plain_name(column.table.rpartition(".")[2]), plain_name(column.column)


@dataclass(frozen=True)
class _OfTable:
    """An INSERT beside the table that it writes to."""

    shape: Shape
    insert: Insert
    table: SqlTable
    dialect: Dialect

    def sites(self) -> Iterator[tuple[Shape, int, SqlColumn]]:
        """The places that draw from a sequence. Notes what else is drawn."""
        self._draw_parents()
        fresh, met = set[str](), list[str]()
        for key in self.table.keys:
            if not self._is_given(key) or fresh & {*key}:
                continue
            column = next((name for name in key if self._sort(name) == "number"), None)
            column = column or next((name for name in key if self._sort(name)), None)
            if column is None:
                met.append(f"{_shown(self.insert.table)} ({', '.join(key)})")
                continue
            fresh.add(column)
            if self._sort(column) == "number":
                written = SqlColumn(self.insert.table, self._written[column])
                yield from ((self.shape, place, written) for place in self._places(column))
            else:
                made = self._text(column)
                self.shape.new |= dict.fromkeys(self._places(column), made)
        self.shape.may_meet = tuple(met)

    @property
    def _written(self) -> dict[str, str]:
        """The columns of the INSERT by their plain names."""
        return {plain_name(name): name for name in self.insert.written(self.table, self.dialect)}

    def _cells(self, column: str) -> list[InsertedValue]:
        at = list(self._written).index(column)
        return [row[at] for row in self.insert.rows if at < len(row)]

    def _places(self, column: str) -> list[int]:
        return [cell.place for cell in self._cells(column) if cell.place is not None]

    def _is_given(self, key: tuple[str, ...]) -> bool:
        """Whether the INSERT writes values into all columns of a key. A column that it leaves out, or whose
        value a function gives, is numbered by the server, null, or new."""
        if not {*key} <= self._written.keys():
            return False
        return all(
            len(self._places(column)) == len(self._cells(column)) > 0 and not self._is_numbered(column)
            for column in key
        )

    def _is_numbered(self, column: str) -> bool:
        """Whether the server numbers the rows, because each has a nought there."""
        values = [self.shape.values[place] for place in self._places(column)]
        noughts = all(
            [text for text, _ in one.numbers.most] == ["0"] and not one.texts.distinct for one in values
        )
        return self.table.columns[column].numbered and noughts

    def _sort(self, column: str) -> str:
        """How new values of a column are drawn: as `number` or as `text`; empty where they cannot be."""
        if column in self.table.parents:
            return ""
        kind = self.table.columns[column]
        if kind.name in WHOLE:
            return "number"
        return "text" if _text_draw(kind) else ""

    def _text(self, column: str) -> Draw:
        written = SqlColumn(self.insert.table, column)
        return Draw(_text_draw(self.table.columns[column]), f"random texts, because {written.words} is a key")

    def _draw_parents(self) -> None:
        """Has numbers that a foreign key leads away from drawn among the rows that it may lead to."""
        for column, (table, other) in self.table.parents.items():
            if not table or column not in self._written:
                continue
            parent = SqlColumn(table, other)
            for place in self._places(column):
                drawn = draw(self.shape.values[place]).expression
                if not self.shape.kept(place) and (drawn == FILL_IN or drawn.startswith("uniform(")):
                    words = f"values of {parent.words}, {FOREIGN}"
                    self.shape.new[place] = Draw(f"pick(:{parent.name})", words, asked=parent)


def _shown(table: str) -> str:
    return table.replace("`", "")


def _text_draw(kind: ColumnType) -> str:
    if kind.name == "uuid":
        return "uuid()"
    if kind.name not in TEXTS or (kind.length is not None and kind.length < TEXT_LEAST):
        return ""
    if kind.length is None or kind.length >= UUID_LENGTH:
        return "uuid()"
    return f"text({kind.length})"
