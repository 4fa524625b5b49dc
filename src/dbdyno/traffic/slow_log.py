"""The slow log of MariaDB and MySQL.

An entry is a head of lines that begin with `#`, then perhaps `use DATABASE;` and `SET timestamp=...;`,
then the statement, of one line or more, or `# administrator command: ...`. The server writes three lines of
its own when it opens the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dbdyno.traffic.clock import moment_s
from dbdyno.traffic.lines import Body
from dbdyno.traffic.seen import Seen

BEGINS = re.compile(r"# (Time: |User@Host: )")
HEAD = re.compile(
    r"#$|# (Time: |User@Host: |Thread_id: |Query_time: |Rows_affected: |Full_scan: |Filesort: |Tmp_|QC_"
    r"|Bytes_|Schema: |Log_slow_rate_|Pages_|Stored.routine|explain:|No InnoDB|InnoDB_| )"
)
QUERY_TIME = re.compile(r"# Query_time: (\d{1,9}(?:\.\d{1,9})?)")
TIME = re.compile(r"# Time: (\S+(?: +\d{1,2}:\d\d:\d\d)?)")
SESSION = re.compile(r"# (?:Thread_id: |User@Host: .* Id: +)(\d+)")
SCHEMA = re.compile(r"# Thread_id: \d+  Schema: (\S*)  ")
ROWS = re.compile(r"# Query_time: .* Rows_sent: (\d{1,18})\b")
AFFECTED = re.compile(r"# (?:Query_time: .* )?Rows_affected: (\d{1,18})\b")
ADMINISTRATOR = re.compile(r"# administrator command: (\w[\w ]*)")
CONTEXT = re.compile(r"(use [^;]+|SET (timestamp|insert_id|last_insert_id)=\d[^;]*);$")
USE = re.compile(r"use `?([^;`]+)`?;$")
TIMESTAMP = re.compile(r"SET .*timestamp=(\d{1,12}(?:\.\d{1,6})?)")
OPENED = re.compile(r".*, Version: .* started with:$")
OPENED_REST = re.compile(r"(Tcp port: |TCP Port: |Time\s+Id\s+Command\s+Argument)")


def begins(line: str) -> bool:
    """Whether an entry of a slow log begins here."""
    return BEGINS.match(line) is not None


@dataclass
class _Entry:
    """An entry as far as it was read. MySQL writes `use` only where it differs from the entry before, and
    MariaDB writes the time so, so both stay from entry to entry."""

    took_s: float | None = None
    rows: int | None = None
    affected: int | None = None
    session: str = ""
    schema: str | None = None
    used: str = ""
    written_s: float | None = None
    ends: bool = False
    """Whether `written_s` is the end of the statement (of MySQL's logs), and no whole second of its begin."""
    body: Body = field(default_factory=Body)
    start: int = 0

    def head(self, line: str) -> None:
        """Takes what a line of the head tells."""
        if found := TIME.match(line):
            self.written_s, self.ends = moment_s(found[1]), "T" in found[1]
        if found := QUERY_TIME.match(line):
            self.took_s = float(found[1])
        if found := ROWS.match(line):
            self.rows = int(found[1])
        if found := AFFECTED.match(line):
            self.affected = int(found[1])
        if found := SESSION.match(line):
            self.session = found[1]
        if found := SCHEMA.match(line):
            self.schema = found[1]

    def ended(self) -> Iterator[Seen]:
        """The statement, behind what sets its context."""
        skipped, began_s = 0, None
        while skipped < len(self.body) and CONTEXT.match(self.body[skipped]):
            if found := USE.match(self.body[skipped]):
                self.used = found[1]
            if found := TIMESTAMP.match(self.body[skipped]):
                began_s = float(found[1])
            skipped += 1
        text = "\n".join(self.body[skipped:]).strip().removesuffix(";").strip()
        at_s = self._at_s(began_s)
        if command := ADMINISTRATOR.match(text):
            text, line, rest = "", self.start, f"command {command[1]}"
        else:
            line, rest = self.start + skipped, ""
        database = self.used if self.schema is None else self.schema
        if text or rest:
            yield Seen(
                text,
                line,
                self.took_s,
                rest=rest,
                session=self.session,
                at_s=at_s,
                database=database,
                rows=self.rows,
                affected=self.affected,
            )

    def _at_s(self, began_s: float | None) -> float | None:
        """MySQL's `# Time` has microseconds, and `SET timestamp` whole seconds."""
        if self.ends and self.written_s is not None:
            return self.written_s - (self.took_s or 0.0)
        return self.written_s if began_s is None else began_s

    def following(self) -> _Entry:
        return _Entry(used=self.used, written_s=self.written_s, ends=self.ends)


def statements(lines: Iterable[tuple[int, str]]) -> Iterator[Seen]:
    """The statements of a slow log; one whose entry was cut off before it is left out."""
    entry, in_head = _Entry(), False
    for number, line in lines:
        if OPENED.match(line) or OPENED_REST.match(line):
            continue
        if begins(line) and not in_head:
            yield from entry.ended()
            entry, in_head = entry.following(), True
        elif in_head and not HEAD.match(line):
            in_head, entry.start = False, number
        if in_head:
            entry.head(line)
        elif entry.start:
            entry.body.append(line)
    yield from entry.ended()
