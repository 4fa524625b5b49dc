"""What files are, told by what stands in them, and the statements that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.traffic import KNOWN
from dbdyno.traffic.formats import Format, engine_of, format_of
from dbdyno.traffic.groups import Traffic, grouped
from dbdyno.traffic.lines import beginning, lines
from dbdyno.traffic.seen import Seen

LOOKED_AT = 1000
"""So many lines may stand before the first entry: a log can begin in the midst of one."""


HEAD = re.compile(r", Version: .* started with:")
"""What MariaDB and MySQL begin a log with."""
RECONNECT = "log for longer; a connection that was open before is not logged, so have clients connect anew"


@dataclass(frozen=True)
class Log:
    """Files of one kind, and their statements one after the other, which are read as they are asked for.
    `engine` is the one that wrote them, as far as that is told."""

    kind: Format
    engine: str
    statements: Iterator[Seen]


def traffic_of(paths: Sequence[Path], database: str = "") -> Traffic:
    """The statements in files of one kind, by digest; with a `database`, its own alone. Raises UserError for
    a file that is none of the known ones, and for files that hold no statement."""
    log = log_of(paths)
    found = grouped(log.kind.name, log.statements, log.kind.dialect, database)
    if not found.groups:
        _refuse(paths, found, log.kind, database)
    found.engine = log.engine
    return found


def log_of(paths: Sequence[Path]) -> Log:
    """What files of one kind hold. Raises UserError for a file that is none of the known ones."""
    heads = {path: beginning(path, LOOKED_AT) for path in paths}
    kinds = {path: _kind(path, head) for path, head in heads.items()}
    if len(kinds) < len(paths):
        raise UserError("a file is given twice", "name each log once")
    first, kind = next(iter(kinds.items()))
    for path, other in kinds.items():
        if other is not kind:
            raise UserError(
                f"{first} is a {kind.name}, and {path} is a {other.name}", "give files of one kind"
            )
    return Log(kind, engine_of(kind, heads[first]), _statements(kinds))


def _refuse(paths: Sequence[Path], found: Traffic, kind: Format, database: str) -> None:
    holds = f"{' and '.join(map(str, paths))} {'holds' if len(paths) == 1 else 'hold'}"
    if found.databases:
        known = ", ".join(name or "(not told)" for name in found.databases)
        raise UserError(f"{holds} no statement in the database {database!r}", f"there are: {known}")
    raise UserError(f"{holds} no statement", f"log for longer; {kind.for_statements}")


def _kind(path: Path, head: list[str]) -> Format:
    found = format_of(head)
    if found is None and any(map(HEAD.search, head)):
        raise UserError(f"{path} holds the head of a log and no statement", RECONNECT)
    if found is None:
        what = "is empty" if not head else f"is no log that Dyno knows; it begins: {head[0][:60]!r}"
        raise UserError(f"{path} {what}", f"give {KNOWN}")
    return found


def _statements(kinds: dict[Path, Format]) -> Iterator[Seen]:
    for path, kind in kinds.items():
        try:
            seen = kind.statements(lines(path))
            yield from seen if len(kinds) == 1 else (replace(each, file=str(path)) for each in seen)
        except UserError as error:
            where = "" if str(path) in error.message else f"{path}, "
            raise UserError(f"{where}{error.message}", error.hint) from None
