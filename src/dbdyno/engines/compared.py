"""What an engine is asked where it is compared with another: its tables, and its own defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def as_it_is(value: str) -> str:
    """A value that a study writes in the server's own words."""
    return value


@dataclass(frozen=True)
class ComparedBy:
    """Two statements of SQL. `columns` has a row for each column of the user's tables: the table and the
    column, table by table, in the order of the columns. `defaults` has a row for each setting of the server:
    its name, and the value that it has where nobody sets it, in the server's own words. `level` makes of such
    a value what a study writes."""

    columns: str
    defaults: str
    level: Callable[[str], str] = as_it_is


OF_INFORMATION_SCHEMA = (
    "SELECT c.table_name, c.column_name FROM information_schema.columns c"
    " JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name"
    " WHERE t.table_type = 'BASE TABLE' AND c.table_schema = {schema}"
    " ORDER BY c.table_name, c.ordinal_position"
)
