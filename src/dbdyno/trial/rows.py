"""A checksum over all rows of a database, by which two engines that made data from the same seeds are shown
to have the same ones.

A row counts by its values alone, and rows by their sum, so that neither the order in which an engine gives
them nor its way of writing a number matters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from dbdyno.frozen import Frozen

if TYPE_CHECKING:
    from dbdyno.driver.load import Load
    from dbdyno.engines.facts import ComparedBy

ROWS_AT_A_TIME = 50_000
"""About how many rows are asked for at once."""
DIGEST_BITS = 64

Value = str | float | None


class TableRows(Frozen):
    """How many rows a table has, and the checksum over them."""

    name: str
    rows: int
    digest: str

    @property
    def text(self) -> str:
        return f"{self.name}: {self.rows} rows, {self.digest}"


def rows_of(load: Load, url: str, asked: ComparedBy) -> tuple[TableRows, ...]:
    """Of every table of the database at a URL. Reads all of it. Raises DriverFailed where a table cannot be
    read."""
    columns: dict[str, list[str]] = {}
    for table, column in load.query(url, asked.columns):
        columns.setdefault(str(table), []).append(str(column))
    return tuple(_table(load, url, name, named) for name, named in sorted(columns.items()))


def _table(load: Load, url: str, table: str, columns: list[str]) -> TableRows:
    count, total = 0, 0
    for where in _parts(load, url, table, columns[0]):
        for row in load.query(url, f"SELECT {', '.join(columns)} FROM {table}{where}"):
            count += 1
            total += _digest(row)
    shown = f"{total % 2**DIGEST_BITS:0{DIGEST_BITS // 4}x}"
    return TableRows(name=table.lower(), rows=count, digest=shown)


def _parts(load: Load, url: str, table: str, key: str) -> Iterator[str]:
    """Conditions that take a table apart by its first column, so that not all of it is in memory at once. One
    whose first column holds no numbers is read whole."""
    [[count, low, high]] = load.query(url, f"SELECT COUNT(*), MIN({key}), MAX({key}) FROM {table}")
    least, most = _number(low), _number(high)
    parts = -(-int(float(count or 0)) // ROWS_AT_A_TIME)
    if parts < 2 or least is None or most is None:
        yield ""
        return
    step = int((most - least) // parts) + 1
    begin = int(least // 1)
    yield f" WHERE {key} IS NULL"
    while begin <= most:
        yield f" WHERE {key} >= {begin} AND {key} < {begin + step}"
        begin += step


def _digest(row: list[Value]) -> int:
    text = "\x1f".join(map(_plain, row))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: DIGEST_BITS // 8])


def _plain(value: Value) -> str:
    """A value as all engines would write it: a number without what does not change it, a text without the
    spaces that a fixed width adds."""
    if value is None:
        return "\0"
    number = _number(value)
    return str(value).rstrip() if number is None else f"{number.normalize():f}"


def _number(value: Value) -> Decimal | None:
    if value is None:
        return None
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
