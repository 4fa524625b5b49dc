"""Entries of PostgreSQL's log: as text with a prefix, as CSV, and as JSON.

In a text a further line of a message begins with a tab, so an entry ends where the next line without one
begins. The last one may go on behind the end of the file. A row of CSV ends with its line, outside of
quotes, and an object of JSON with its brace.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dbdyno.sql_logs.lines import Body
from dbdyno.sql_logs.postgresql.prefix import LINE, SEVERITY, ZONE, inferred, one_of, pattern
from dbdyno.sql_logs.seen import CUT_OFF, LAST, NO_ENTRY, TOO_LONG, Clock, Reading

Lines = Iterable[tuple[int, str]]
NONE = "[unknown]"
"""Stands in a log for a database or a user that a session has not told yet."""
MOMENT = re.compile(rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{{1,6}})?)(?: ?({ZONE}))?")
ROW = re.compile(
    rf'{MOMENT.pattern},(?:"(?:[^"]|"")*")?,(?:"(?:[^"]|"")*")?,\d*,(?:"(?:[^"]|"")*")?,[0-9a-f.]*,\d*,'
)
SEVERE = re.compile(SEVERITY)
DATABASE, SESSION, LABEL, MESSAGE, DETAIL, CONTEXT, LEAST = 2, 5, 11, 13, 14, 18, 23
FIELD_CHARACTERS_MOST = 2**26
"""A statement can be longer than the 131,072 characters that Python's reader of CSV allows unless told."""


@dataclass(frozen=True)
class Entry:
    """What the server wrote at a time. `at_s` is when it wrote, in seconds since 1970; `whole` says that
    this is a whole second. `lacks` says why an entry cannot be read; its message is empty then."""

    line: int
    severity: str
    message: str
    detail: str = ""
    context: str = ""
    session: str = ""
    database: str = ""
    at_s: float | None = None
    whole: bool = False
    lacks: str = ""


def text_begins(line: str) -> bool:
    """Whether an entry begins here, whatever its prefix."""
    return not line.startswith(("\t", "{")) and LINE.match(line) is not None


def learnt(lines: Lines, reading: Reading) -> Reading:
    """With the prefix that a text's lines tell. Raises UserError where they can be read in two ways."""
    if reading.prefix is not None:
        return reading
    prefix = one_of(inferred(lines))
    said = f"the log is read with the prefix that its lines tell: --prefix '{prefix}'"
    return Reading(prefix, reading.zone, reading.whole, (said,))


@dataclass
class _Open:
    """An entry as far as it was read; `parts` are its message and what was written about it, by label."""

    line: int
    found: re.Match[str]
    at_s: float | None = None
    parts: dict[str, Body] = field(default_factory=dict)
    last: str = ""

    def begin(self, label: str, message: str) -> None:
        self.last = label
        self.parts[label] = Body(message)

    def text(self, label: str) -> str:
        return "".join(self.parts.get(label, ())).removesuffix("\n")


class TextEntries:
    """Reads texts. `process` and `at_s` are of a line that was wrapped in another log, which tells them
    where the prefix does not."""

    def __init__(self, reading: Reading) -> None:
        self._pattern, self._whole = pattern(reading.prefix or ""), reading.whole
        self._telling = bool({"moment", "epoch", "session"} & {*self._pattern.groupindex})
        self._clock = Clock(reading.zone)
        self._open: dict[str, _Open] = {}
        self._lost: set[str] = set()

    def read(self, lines: Lines) -> Iterator[Entry]:
        """The entries of one file."""
        for number, line in lines:
            yield from self.take(number, line)
        yield from self.ended()

    def take(self, number: int, line: str, process: str = "", at_s: float | None = None) -> Iterator[Entry]:
        """The entry that is whole with this line, and a line that is none. The lines of different processes
        may stand among each other where they name them."""
        opened = self._open.get(process)
        if not line:
            yield from self.ended()
            yield Entry(number, "", "", lacks=CUT_OFF)
            return
        if line.startswith("\t"):
            if opened is not None:
                opened.parts[opened.last].append(line[1:])
            elif process in self._lost:
                # It is of an entry that was left out already.
                pass
            else:
                self._lost.add(process)
                yield Entry(number, "", "", lacks=CUT_OFF)
            return
        found = self._pattern.match(line)
        if found is None:
            if not line.strip():
                return
            # What has no tab may be the rest of the entry before, so that one's end is not certain.
            if opened is not None:
                del self._open[process]
                self._lost.add(process)
                yield Entry(opened.line, "", "", lacks=CUT_OFF)
            yield Entry(number, "", "", lacks=NO_ENTRY)
            return
        self._lost.discard(process)
        label = found["label"]
        if SEVERE.fullmatch(label):
            if opened is not None:
                yield self._entry(opened, process)
            self._open[process] = opened = _Open(number, found, at_s)
            opened.begin(label, found["message"])
        elif opened is not None and self._name(found, process) == self._name(opened.found, process):
            opened.begin(label, found["message"])

    def ended(self) -> Iterator[Entry]:
        """The last entry of each process, whose end is certain only where more is told about it."""
        for process in list(self._open):
            yield from self.ended_of(process)
        self._lost.clear()

    def ended_of(self, process: str, certain: bool = False) -> Iterator[Entry]:
        """The last entry of one process, whose end may be certain."""
        opened = self._open.pop(process, None)
        if opened is not None:
            last = "".join(opened.parts[opened.last][-1:])
            certain |= self._whole or (not SEVERE.fullmatch(opened.last) and last.endswith("\n"))
            yield self._entry(opened, process) if certain else Entry(opened.line, "", "", lacks=LAST)

    def _holds_another(self, line: str) -> bool:
        """Whether an entry was cut in this line and another one follows in it."""
        return self._telling and ":  " in line and self._pattern.search(line) is not None

    def _name(self, found: re.Match[str], process: str) -> str:
        told = found.groupdict()
        return told.get("session") or told.get("process") or process

    def _entry(self, opened: _Open, process: str) -> Entry:
        if any(body.over for body in opened.parts.values()):
            return Entry(opened.line, "", "", lacks=TOO_LONG)
        if any(self._holds_another(line) for body in opened.parts.values() for line in body):
            return Entry(opened.line, "", "", lacks=CUT_OFF)
        found, told = opened.found, opened.found.groupdict()
        label, at_s, whole = found["label"], opened.at_s, False
        if moment := told.get("moment"):
            at_s, whole = self._clock.at_s(moment, told["zone"] or ""), "." not in moment
        elif epoch := told.get("epoch"):
            at_s = float(epoch)
        database = told.get("database") or ""
        return Entry(
            opened.line,
            label,
            opened.text(label),
            opened.text("DETAIL"),
            opened.text("CONTEXT"),
            self._name(found, process),
            "" if database == NONE else database,
            at_s,
            whole,
        )


def csv_begins(line: str) -> bool:
    """Whether a row begins here."""
    return ROW.match(line) is not None


class CsvEntries:
    """Reads CSV. A row that is cut off is an entry that lacks its end."""

    def __init__(self, reading: Reading) -> None:
        self._clock = Clock(reading.zone)

    def read(self, lines: Lines) -> Iterator[Entry]:
        """The entries of one file."""
        csv.field_size_limit(FIELD_CHARACTERS_MOST)
        start, rows, odd = 0, Body(), False
        for number, line in lines:
            begins = csv_begins(line)
            if rows and (begins or not odd):
                yield self._entry(start, rows)
                rows, odd = Body(), False
            if not rows and not begins:
                if not start or line.strip():
                    yield Entry(number, "", "", lacks=CUT_OFF if not start else NO_ENTRY)
                    start = start or number
                continue
            if not rows:
                start, rows = number, Body(line)
            else:
                rows.append(line)
            odd ^= line.count('"') % 2 == 1
        if rows:
            yield self._entry(start, rows)

    def _entry(self, start: int, rows: Body) -> Entry:
        text = "".join(rows)
        if rows.over:
            return Entry(start, "", "", lacks=TOO_LONG)
        try:
            [row] = csv.reader(rows, strict=True)
        except (csv.Error, ValueError):
            row = []
        moment = MOMENT.match(text)
        if not text.endswith("\n") or len(row) < LEAST or not SEVERE.fullmatch(row[LABEL]) or moment is None:
            return Entry(start, "", "", lacks=CUT_OFF)
        return Entry(
            start,
            row[LABEL],
            row[MESSAGE],
            row[DETAIL],
            row[CONTEXT],
            row[SESSION],
            row[DATABASE],
            self._clock.at_s(moment[1], moment[2] or ""),
        )


JSON_BEGINS = '{"timestamp":'


def json_begins(line: str) -> bool:
    """Whether this is an entry."""
    return line.startswith(JSON_BEGINS) and '"error_severity":' in line


def of_json(text: str) -> dict[str, Any] | None:
    """An object; None for what is none."""
    try:
        told = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


class JsonEntries:
    """Reads JSON, an object a line."""

    def __init__(self, reading: Reading) -> None:
        self._clock = Clock(reading.zone)

    def read(self, lines: Lines) -> Iterator[Entry]:
        """The entries of one file."""
        for number, line in lines:
            if line.strip():
                told = of_json(line)
                yield Entry(number, "", "", lacks=CUT_OFF) if told is None else self.entry(number, told)

    def entry(
        self, number: int, told: dict[str, Any], moment: str = "timestamp", database: str = "dbname"
    ) -> Entry:
        """Of an object whose time and database have these names."""

        def text(key: str) -> str:
            value = told.get(key, "")
            return value if isinstance(value, str) else ""

        found = MOMENT.match(text(moment))
        return Entry(
            number,
            text("error_severity"),
            text("message"),
            text("detail"),
            text("context"),
            text("session_id"),
            text(database),
            self._clock.at_s(found[1], found[2] or "") if found else None,
            lacks="" if text("error_severity") else NO_ENTRY,
        )
