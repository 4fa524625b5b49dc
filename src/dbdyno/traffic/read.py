"""What a file is, told by what stands in it, and the statements that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.traffic import general_log, pg_stat_statements, slow_log
from dbdyno.traffic.groups import Traffic, grouped
from dbdyno.traffic.tokens import Dialect

LOOKED_AT = 1000
"""So many lines may stand before the first entry: a log can begin in the midst of one."""
KNOWN = "a slow log or general log of MariaDB or MySQL, or pg_stat_statements as CSV"


def traffic_of(path: Path) -> Traffic:
    """The statements in a file, by digest. Raises UserError for a file that is none of the known ones, or
    that holds no statement."""
    try:
        head = [line for _, line in islice(_lines(path), LOOKED_AT)]
        found = _read(path, head)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", f"give {KNOWN}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not in UTF-8", f"give {KNOWN}") from None
    if found is None:
        what = "is empty" if not head else f"is no log that Dyno knows; it begins: {head[0][:60]!r}"
        raise UserError(f"{path} {what}", f"give {KNOWN}")
    if not found.groups:
        raise UserError(
            f"{path} holds no statement", "log for longer; of a slow log: SET long_query_time = 0"
        )
    return found


def _read(path: Path, head: list[str]) -> Traffic | None:
    if head and pg_stat_statements.begins(head[0]):
        return grouped("pg_stat_statements", pg_stat_statements.statements(path), Dialect.POSTGRESQL)
    if any(map(slow_log.begins, head)):
        return grouped("slow log", slow_log.statements(_lines(path)), Dialect.MYSQL)
    if any(map(general_log.begins, head)):
        return grouped("general log", general_log.statements(_lines(path)), Dialect.MYSQL)
    return None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Logs hold whatever clients sent, so bytes that are no text are replaced."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            yield number, line.rstrip("\r\n")
