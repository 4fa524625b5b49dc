"""What files are, told by what stands in them, and the statements that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.sql_logs import KNOWN
from dbdyno.sql_logs.formats import AS_TOLD, LogFormat, engine_of_log, format_of
from dbdyno.sql_logs.groups import Grouping, Traffic
from dbdyno.sql_logs.lines import beginning, numbered_lines, pieces
from dbdyno.sql_logs.seen import LAST, LogReading, SeenStatement
from dbdyno.sql_logs.wrapped import is_wrapped, unwrapped

LOOKED_AT = 1000
"""So many lines may stand before the first entry: a log can begin in the midst of one."""


HEAD = re.compile(r", Version: .* started with:")
"""What MariaDB and MySQL begin a log with."""
CERTAIN = "log for longer; --whole takes the last statement too: give it where the file was not cut"
RECONNECT = "log for longer; a connection that was open before is not logged, so have clients connect anew"


@dataclass(frozen=True)
class SqlLog:
    """Files of one kind in the order of their times. `engine` is the one that wrote them, as far as that is
    told; `notes` say how they are read."""

    kind: LogFormat
    engine: str
    paths: tuple[Path, ...]
    reading: LogReading

    @property
    def notes(self) -> tuple[str, ...]:
        return self.reading.notes

    @property
    def statements(self) -> Iterator[SeenStatement]:
        """What they tell, one after the other, read as it is asked for."""
        reader = self.kind.reader(self.reading)
        for path in self.paths:
            with _named(path):
                for seen in reader.read(_lines(path)):
                    yield seen if len(self.paths) == 1 else replace(seen, file=str(path))
        yield from reader.ended()

    def traffic(self, database: str = "") -> Traffic:
        """What they tell by digest; with a `database`, its own alone."""
        files = tuple(map(str, self.paths)) if len(self.paths) > 1 else ()
        grouping = Grouping(self.kind.name, self.kind.dialect, database, files, self.reading.key)
        reader = self.kind.reader(self.reading)
        for number, path in enumerate(self.paths):
            grouping.groups.next_file(number)
            plain = reader.takes_bytes and not is_wrapped(beginning(path, LOOKED_AT))
            with _named(path):
                reader.group(pieces(path) if plain else _lines(path), grouping)
        reader.group_rest(grouping)
        found = grouping.traffic()
        found.engine, found.notes, found.anonymous = self.engine, self.notes, bool(self.reading.key)
        return found


def traffic_of(paths: Sequence[Path], database: str = "", reading: LogReading = AS_TOLD) -> Traffic:
    """The statements in files of one kind, by digest; with a `database`, its own alone. Raises UserError for
    a file that is none of the known ones, and for files that hold no statement."""
    log = log_of(paths, reading)
    found = log.traffic(database)
    if not found.groups:
        _refuse(paths, found, log.kind, database)
    return found


def log_of(paths: Sequence[Path], reading: LogReading = AS_TOLD) -> SqlLog:
    """What files of one kind hold, in the order of their times. Raises UserError for a file that is none of
    the known ones."""
    if len({*paths}) < len(paths):
        raise UserError("a file is given twice", "name each log once")
    heads = {path: _head(path) for path in paths}
    kinds = {path: _kind(path, head) for path, head in heads.items()}
    first, kind = next(iter(kinds.items()))
    for path, other in kinds.items():
        if other is not kind:
            raise UserError(
                f"{first} is a {kind.name}, and {path} is a {other.name}", "give files of one kind"
            )
    ordered = _in_order(kind, heads, reading)
    learnt = kind.learn(chain.from_iterable(map(_lines, ordered)), reading)
    return SqlLog(kind, engine_of_log(kind, heads[first]), tuple(ordered), learnt)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Has each error name the file."""
    try:
        yield
    except UserError as error:
        where = "" if str(path) in error.message else f"{path}, "
        raise UserError(f"{where}{error.message}", error.hint) from None


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    return unwrapped(beginning(path, LOOKED_AT), numbered_lines(path))


def _head(path: Path) -> list[str]:
    """The first lines of the log that a file holds, without their ends."""
    head = beginning(path, LOOKED_AT)
    return [line.rstrip("\n") for _, line in unwrapped(head, [(0, f"{line}\n") for line in head])]


def _in_order(kind: LogFormat, heads: Mapping[Path, list[str]], reading: LogReading) -> list[Path]:
    """Files in the order of their first moments; as they are given where one tells none."""
    firsts = dict[Path, float]()
    for path, head in heads.items():
        numbered = [(0, f"{line}\n") for line in head]
        known = LogReading(reading.prefix, reading.zone, whole=True) if len(heads) > 1 else None
        try:
            told = kind.statements(numbered, known) if known else ()
            firsts[path] = next(seen.at_s for seen in told if seen.at_s is not None)
        except (StopIteration, UserError):
            return list(heads)
    return sorted(heads, key=firsts.__getitem__)


def _refuse(paths: Sequence[Path], found: Traffic, kind: LogFormat, database: str) -> None:
    holds = f"{' and '.join(map(str, paths))} {'holds' if len(paths) == 1 else 'hold'}"
    if found.databases:
        known = ", ".join(name or "(not told)" for name in found.databases)
        raise UserError(f"{holds} no statement in the database {database!r}", f"there are: {known}")
    if LAST in found.rest:
        raise UserError(f"{holds} no statement but the last", CERTAIN)
    raise UserError(f"{holds} no statement", f"log for longer; {kind.for_statements}")


def _kind(path: Path, head: list[str]) -> LogFormat:
    found = format_of(head)
    if found is None and any(map(HEAD.search, head)):
        raise UserError(f"{path} holds the head of a log and no statement", RECONNECT)
    if found is None:
        what = "is empty" if not head else f"is no log that Dyno knows; it begins: {head[0][:60]!r}"
        raise UserError(f"{path} {what}", f"give {KNOWN}")
    return found
