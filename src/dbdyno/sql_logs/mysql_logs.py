"""The slow log and the general log of MariaDB, MySQL and Percona Server.

An entry of a slow log is a head of lines that begin with `#`, then perhaps `use DATABASE;` and
`SET timestamp=...;`, then the statement, which ends with `;` at the end of a line, or
`# administrator command: ...;`. A general log has a line for each command of a connection; a statement's
further lines follow its first, and it ends where the next command begins. The server writes three lines of
its own when it opens either file. (`sql/log.cc` of each server has the forms.)

What looks like the next entry may also stand within a text in quotes. Where a quote is open at such a line,
both readings are followed: if the text ends later, as an entry does, neither is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from dbdyno.sql_logs.lines import Body
from dbdyno.sql_logs.seen import CUT_OFF, LAST, TOO_LONG, Clock, Reading, Seen

Lines = Iterable[tuple[int, str]]
DOUBT_LINES_MOST = 10_000
"""So far both readings of an open quote are followed; then the entry counts as cut."""
DOUBT = "entry whose begin or end is not certain"

OPENED = re.compile(r".*, Version: .* started with:\n?\Z")
TITLE = re.compile(r"T[Cc][Pp] [Pp]ort: .*[Ss]ocket: |Time\s+Id\s+Command\s+Argument")
"""What a server writes when it opens the file, behind the line of its version."""
SLOW = re.compile(
    r"# (?:Time: (?:\d{6} |\d{4}-\d\d-\d\dT)|User@Host: .*\[.*\] @ .*\[.*\]"
    r"|Query_time: \d+(?:\.\d+)?\s+Lock_time: )"
)
GENERAL = re.compile(
    r"(?:(?P<time>\d{6} [ \d]\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+"
    r"|\t\t(?=[ \d]{4,}\d ) *)(?P<id>\d+) (?P<name>[A-Z][A-Za-z]*(?: [A-Za-z]+)*)(?:\t|\n?\Z)(?P<text>.*)",
    re.DOTALL,
)
"""A line that has this form is a command, whether its name is known or not."""
WITHIN = re.compile(
    r"(?:\d{6} [ \d]\d:\d\d:\d\d|\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?|\t)\t *\d+ "
    r"[A-Z][A-Za-z]*(?: [A-Za-z]+)*\t"
)
"""A command in the midst of a line, where the one before was cut."""
OLD_NAMES = (
    "Sleep|Quit|Init DB|Query|Field List|Create DB|Drop DB|Refresh|Shutdown|Statistics|Processlist|Connect"
    "|Kill|Debug|Ping|Time|Delayed ins|Change user|Binlog Dump|Table Dump|Connect Out|Register Sl"
    "|Prepare|Execute|Long Data|Close stmt|Reset stmt|Set option|Fetch|Daemon|Error"
)
PADDED = re.compile(
    r"(?:(?P<time>\d{6} [ \d]\d:\d\d:\d\d)\s+|\s{2,})(?P<id>\d+) "
    rf"(?P<name>{'|'.join(f'{name:11}' for name in OLD_NAMES.split('|'))})(?: |\n?\Z)(?P<text>.*)",
    re.DOTALL,
)
"""As MySQL 5.0 and before write it: the command's name has eleven letters, filled with blanks."""

_OUTSIDE = re.compile(r"""(?:[^'"`/#-]+|/(?!\*)|-(?!-\s)|--\s[^\n]*|\#[^\n]*)*+""")
_INSIDE = {
    "'": re.compile(r"(?:[^'\\]|\\.|'')*+", re.DOTALL),
    '"': re.compile(r'(?:[^"\\]|\\.|"")*+', re.DOTALL),
    "`": re.compile(r"(?:[^`]|``)*+", re.DOTALL),
    "/*": re.compile(r"(?:[^*]|\*(?!/))*+", re.DOTALL),
}
_MARKS = re.compile(r"['\"`]|/\*")


def open_quote(text: str, state: str = "") -> str:
    """The quote or comment that is open behind whole lines of SQL; `state` is the one that was open before
    them, and empty stands for none."""
    if not state and not _MARKS.search(text):
        return ""
    at = 0
    while at < len(text):
        if not state:
            found = _OUTSIDE.match(text, at)
            at = found.end() if found else at
            if at < len(text):
                state = "/*" if text[at] == "/" else text[at]
                at += len(state)
            continue
        inside = _INSIDE[state].match(text, at)
        at = inside.end() if inside else at
        if at < len(text):
            at, state = at + (2 if state == "/*" else 1), ""
    return state


@dataclass
class Entry:
    """An entry as it stands in the log: the lines of its head, and of its statement."""

    line: int
    head: list[str] = field(default_factory=list)
    body: Body = field(default_factory=Body)
    start: int = 0
    quote: str = ""
    rank: int = -1
    """Of the head's lines that stand in an order, the last one's place in it."""

    def take(self, number: int, line: str) -> None:
        """Adds a line to the statement."""
        self.start = self.start or number
        self.quote = open_quote(line, self.quote)
        self.body.append(line)


class _Log:
    """Cuts lines into entries. `begins` knows the first line of an entry."""

    def begins(self, line: str) -> bool:
        raise NotImplementedError

    def first(self, number: int, line: str) -> Entry:
        """The entry that begins with this line."""
        raise NotImplementedError

    def joins(self, entry: Entry, line: str) -> bool:
        """Whether a line belongs to the entry's head, which takes it."""
        raise NotImplementedError

    def has_end(self, entry: Entry, last: bool) -> bool:
        """Whether an entry whose quotes are closed is whole where another begins, or at the end of a file."""
        raise NotImplementedError

    def told(self, entry: Entry) -> Iterator[Seen]:
        """What a whole entry tells."""
        raise NotImplementedError

    def read(self, lines: Lines) -> Iterator[Seen]:
        """What one file tells."""
        entry: Entry | None = None
        source, before = _Ahead(lines), 0
        for number, line in source:
            if not line:
                # What is damaged ends what was begun.
                if entry is not None:
                    yield from self._ended(entry, last=True)
                entry = None
                yield Seen("", number, rest=CUT_OFF)
                continue
            if entry is not None and self.joins(entry, line):
                continue
            if entry is not None and self._breaks(entry, line):
                yield from self._ended(entry, last=True)
                entry = None
                yield Seen("", number, rest=CUT_OFF)
                continue
            opened = OPENED.match(line) is not None
            if not opened and not self.begins(line):
                if entry is not None:
                    entry.take(number, line)
                elif line.strip() and not TITLE.match(line):
                    before = before or number
                continue
            if entry is not None and entry.quote and entry.start:
                yield self._either(entry, (number, line), source)
                entry = None
                continue
            if entry is not None:
                yield from self._ended(entry, last=False)
            entry = None if opened else self.first(number, line)
        if before:
            yield Seen("", before, rest=CUT_OFF)
        if entry is not None:
            yield from self._ended(entry, last=True)

    def _breaks(self, entry: Entry, line: str) -> bool:
        """Whether the file ends in the head of an entry behind this one."""
        begun = line.startswith("#") and not line.endswith("\n")
        return begun and not entry.quote and entry.start > 0 and self.has_end(entry, last=False)

    def _ended(self, entry: Entry, last: bool) -> Iterator[Seen]:
        if entry.body.over:
            yield Seen("", entry.line, rest=TOO_LONG)
        elif not entry.quote and self.has_end(entry, last):
            yield from self.told(entry)
        else:
            may_go_on = last and not entry.quote and self.has_end(entry, last=False)
            yield Seen("", entry.line, rest=LAST if may_go_on else CUT_OFF)

    def _either(self, entry: Entry, at: tuple[int, str], source: _Ahead) -> Seen:
        """What becomes of an entry with an open quote at a line that looks like another. Lines that turn out
        to be of others are read again."""
        kept, entries = [at], int(not at[1].startswith("#"))
        entry.take(*at)
        for number, line in source:
            begins = self.begins(line) or OPENED.match(line) is not None
            if begins and not entry.quote and self.has_end(entry, last=False):
                source.push([(number, line)])
                return Seen("", entry.line, rest=DOUBT, times=1 + entries)
            kept.append((number, line))
            entries += begins and line.startswith(("# Query_time: ", "\t", *"0123456789"))
            entry.take(number, line)
            if len(kept) >= DOUBT_LINES_MOST:
                break
        else:
            if not entry.quote and self.has_end(entry, last=True):
                return Seen("", entry.line, rest=DOUBT, times=1 + entries)
        source.push(kept)
        return Seen("", entry.line, rest=CUT_OFF)


class _Ahead(Iterator[tuple[int, str]]):
    """Lines that can be put back."""

    def __init__(self, lines: Lines) -> None:
        self._lines, self._put = iter(lines), list[tuple[int, str]]()

    def __next__(self) -> tuple[int, str]:
        return self._put.pop() if self._put else next(self._lines)

    def push(self, lines: list[tuple[int, str]]) -> None:
        """Has these lines come next."""
        self._put.extend(reversed(lines))


RANKS = ("# Time: ", "# User@Host: ", "# Query_time: ")
"""The lines of a head that stand in this order."""
QUERY_TIME = re.compile(r"^# Query_time: (\d{1,9}(?:\.\d{1,9})?)", re.M)
TIME = re.compile(r"^# Time: (\S+(?: +\d{1,2}:\d\d:\d\d(?:\.\d{1,6})?)?)", re.M)
STARTED = re.compile(r"^# Query_time: .*\bStart: (\d{4}-\d\d-\d\dT\S+)", re.M)
SESSION = re.compile(r"^# (?:Thread_id: |User@Host: .* Id: +|Query_time: .* Thread_id: )(\d+)", re.M)
SCHEMA = re.compile(r"^# (?:Thread_id: \d+  )?Schema: (.*?)(?:  |$)", re.M)
ROWS = re.compile(r"^# Query_time: .* Rows_sent: (\d{1,18})\b", re.M)
AFFECTED = re.compile(r"^# (?:Query_time: .* )?Rows_affected: (\d{1,18})\b", re.M)
FAILED = re.compile(r"^# (?:Query_time|Thread_id|Schema): .*\b(?:Last_errno|Errno): [1-9]", re.M)
SAMPLED = re.compile(r"^# Log_slow_rate_type: \w+  Log_slow_rate_limit: (\d{1,9})", re.M)
ADMINISTRATOR = re.compile(r"# administrator command: (\w[\w ]*)")
USE = re.compile(r"use (.*);\n")
SET = re.compile(r"SET (?:last_insert_id=\d+,)?(?:insert_id=\d+,)?timestamp=(\d{1,12}(?:\.\d{1,6})?);\n")
COMPOUND = re.compile(
    r"(?:CREATE|ALTER)\s.*?\b(?:PROCEDURE|FUNCTION|TRIGGER|EVENT|PACKAGE)\b|BEGIN\s+NOT\s+ATOMIC\b",
    re.I | re.S,
)
"""Statements that hold others, each with a `;` of its own, so the end of a file may cut them behind one."""


def slow_begins(line: str) -> bool:
    """Whether an entry of a slow log begins here."""
    return SLOW.match(line) is not None


class SlowLog(_Log):
    """Reads slow logs, one file after another. MySQL writes `use` only where it differs from the entry
    before, and the time so in old versions, so both stay."""

    def __init__(self, reading: Reading) -> None:
        self._clock, self._whole = Clock(reading.zone), reading.whole
        self._used, self._written, self._mariadb = "", "", False

    def begins(self, line: str) -> bool:
        return line.startswith(RANKS) and SLOW.match(line) is not None

    def first(self, number: int, line: str) -> Entry:
        return Entry(number, [line], rank=_rank(line))

    def joins(self, entry: Entry, line: str) -> bool:
        if entry.start or not line.startswith("#") or ADMINISTRATOR.match(line):
            return False
        if self.begins(line):
            rank = _rank(line)
            if rank <= entry.rank:
                return False
            entry.rank = rank
        entry.head.append(line)
        return True

    def has_end(self, entry: Entry, last: bool) -> bool:
        if not entry.body:
            return False
        if last and self._whole:
            return entry.body[-1].rstrip("\n").endswith(";")
        if not entry.body[-1].endswith(";\n"):
            return False
        return not last or COMPOUND.match(self._context(entry.body)[1]) is None

    def _context(self, body: list[str]) -> tuple[list[str], str]:
        """The lines by which the server says where and when the statement ran, and the statement."""
        count = 0
        for pattern in (USE, SET):
            count += bool(body[count:] and pattern.fullmatch(body[count]))
        return body[:count], "".join(body[count:])

    def told(self, entry: Entry) -> Iterator[Seen]:
        head = "".join(entry.head)
        context, text = self._context(entry.body)
        stamp_s = None
        for line in context:
            if found := USE.fullmatch(line):
                self._used = found[1]
            elif found := SET.fullmatch(line):
                stamp_s = float(found[1])
        if found := TIME.search(head):
            self._written = found[1]
        took = QUERY_TIME.search(head)
        if took is None or not text:
            yield Seen("", entry.line, rest=CUT_OFF)
            return
        took_s, times = float(took[1]), max(1, int(_first(SAMPLED, head) or 1))
        self._mariadb |= "  QC_hit: " in head
        at_s, whole_s = self._begun(head, stamp_s, took_s)
        command = ADMINISTRATOR.match(text)
        schema = _first(SCHEMA, head)
        rows, affected = _first(ROWS, head), _first(AFFECTED, head)
        yield Seen(
            "" if command else _bare(text),
            entry.start + len(context),
            took_s * times,
            times,
            rest=f"command {command[1]}" if command else "",
            session=_first(SESSION, head) or "",
            at_s=at_s,
            database=self._used if schema is None else schema,
            rows=None if rows is None else int(rows),
            affected=None if affected is None else int(affected),
            failed=FAILED.search(head) is not None,
            whole_s=whole_s,
            sampled=times > 1,
        )

    def _begun(self, head: str, stamp_s: float | None, took_s: float) -> tuple[float | None, float | None]:
        """When a statement began, and the whole second that says so where no finer time does. MariaDB's
        `SET timestamp` is the begin. MySQL's `# Time` is the end, and `SET timestamp` too where times are in
        the form of before 5.7; later ones tell microseconds with `# Time` alone."""
        if found := STARTED.search(head):
            return self._clock.at_s(found[1]), None
        if self._written[4:5] == "-":
            if not TIME.search(head):
                # These versions write it in each entry, so this one's is lost.
                return None, None
            end_s = self._clock.at_s(self._written)
            return (None if end_s is None else end_s - took_s), None
        written_s = self._clock.at_s(self._written) if self._written else None
        whole_s = written_s if stamp_s is None else stamp_s
        if whole_s is None:
            return None, None
        if not self._mariadb and "." in self._written and written_s is not None:
            return whole_s + written_s % 1 - took_s, None
        at_s = whole_s if self._mariadb else whole_s - took_s
        return at_s, whole_s if whole_s.is_integer() else None

    def ended(self) -> Iterator[Seen]:
        """What is left when all files are read."""
        yield from ()


def _rank(line: str) -> int:
    return next((rank for rank, key in enumerate(RANKS) if line.startswith(key)), -1)


def _bare(text: str) -> str:
    """A statement without what stands around it: blanks, and the `;` that the server or the client wrote."""
    return text.strip(" \t\r\n").rstrip("; \t\r\n")


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


EXECUTED = ("Query", "Execute")
CONNECTED = re.compile(r".*? on (.*?)(?: using \S+)?", re.DOTALL)
CHOSEN = re.compile(r"use\s+(?:`((?:[^`]|``)+)`|([^;`\s]+))\s*;?\s*", re.IGNORECASE)
EXECUTE = re.compile(r"\s*(?:/\*(?!!).*?\*/\s*)*execute\s", re.IGNORECASE | re.DOTALL)
TOLD_TWICE = "EXECUTE whose statement is logged beside it"


def general_begins(line: str) -> bool:
    """Whether a command of a general log begins here."""
    return (GENERAL.fullmatch(line) or PADDED.fullmatch(line)) is not None


class GeneralLog(_Log):
    """Reads general logs, one file after another. Old servers write the time only where it differs from the
    line before."""

    def __init__(self, reading: Reading) -> None:
        self._clock, self._whole = Clock(reading.zone), reading.whole
        self._databases: dict[str, str] = {}
        self._executes: dict[str, Seen] = {}
        self._written: str | None = None
        self._form: re.Pattern[str] | None = None

    def _command(self, line: str) -> re.Match[str] | None:
        """A file has one form, which its first command tells."""
        if self._form is not None:
            return self._form.fullmatch(line)
        for form in (GENERAL, PADDED):
            if found := form.fullmatch(line):
                self._form = form
                return found
        return None

    def begins(self, line: str) -> bool:
        return line[:1] in "\t 0123456789" and self._command(line) is not None

    def first(self, number: int, line: str) -> Entry:
        found = self._command(line)
        assert found is not None
        entry = Entry(number, [found["time"] or "", found["id"], found["name"].strip()], start=number)
        text = found["text"] or "\n" * line.endswith("\n")
        entry.body = Body(text)
        # The texts of other commands are names and the like, which no quotes rule.
        entry.quote = open_quote(text) if entry.head[2] in EXECUTED else ""
        return entry

    def joins(self, entry: Entry, line: str) -> bool:
        return False

    def has_end(self, entry: Entry, last: bool) -> bool:
        alone = entry.head[2] not in EXECUTED and entry.body[-1].endswith("\n")
        return not last or self._whole or alone

    def told(self, entry: Entry) -> Iterator[Seen]:
        written, session, name = entry.head
        self._written = written or self._written
        at_s = self._clock.at_s(self._written) if self._written else None
        text = "".join(entry.body).removesuffix("\n")
        if "\t" in text and WITHIN.search(f"\t{text}"):
            yield Seen("", entry.line, rest=CUT_OFF)
            return
        executed = name in EXECUTED and bool(text.strip())
        chosen = self._chosen(name, text)
        if chosen is not None:
            self._databases[session] = chosen
        seen = Seen(
            _bare(text) if executed else "",
            entry.line,
            rest="" if executed else f"command {name}",
            session=session,
            at_s=at_s,
            database=self._databases.get(session, ""),
            whole_s=at_s if at_s is not None and "." not in (self._written or "") else None,
        )
        held = self._executes.pop(session, None)
        if held is not None:
            yield replace(held, text="", rest=TOLD_TWICE) if name == "Execute" else held
        if name == "Query" and EXECUTE.match(text):
            self._executes[session] = seen
        else:
            yield seen
        if name == "Quit":
            self._databases.pop(session, None)

    def _chosen(self, name: str, text: str) -> str | None:
        """The database that a command chooses; None where it chooses none."""
        if name == "Init DB":
            return text
        if name in ("Connect", "Change user"):
            found = CONNECTED.fullmatch(text)
            return found[1] if found else None
        found = CHOSEN.fullmatch(text) if name in EXECUTED else None
        return (found[1] or found[2]).replace("``", "`") if found else None

    def ended(self) -> Iterator[Seen]:
        """What is left when all files are read."""
        yield from self._executes.values()
        self._executes.clear()
