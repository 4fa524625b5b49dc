"""PostgreSQL's log as text, with any `log_line_prefix`: further lines of a message begin with a tab.

What the prefix tells is found by how it looks: a moment (`%t`, `%m`, `%n`), the process (`%p` in brackets,
behind `pid=`, or the first number), the session (`%c`) and the database (`%u@%d`, or behind `db=`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dbdyno.traffic.lines import Body
from dbdyno.traffic.postgresql.entry import MOMENT, NONE, SEVERITY, Entry, moment_s

ABOUT = "DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION|BACKTRACE"
"""Lines that say more of the entry before them."""
ENTRY = re.compile(rf"(?P<prefix>.{{0,400}}?)\b(?P<label>{SEVERITY}|{ABOUT}):  (?P<message>.*)", re.DOTALL)
EPOCH = re.compile(r"(?<![\w.])(\d{10}\.\d{3})(?![\w.])")
SESSION = re.compile(r"(?<![\w.])([0-9a-f]{6,16}\.[0-9a-f]{1,8})(?![\w.])")
PROCESS = (
    re.compile(r"\[(\d{1,10})(?:-\d+)?\]"),
    re.compile(r"\bpid[=:] ?(\d{1,10})", re.I),
    re.compile(r"(?<![\w.:(@-])(\d{1,10})(?![\w.:)@-])"),
)
DATABASE = (
    re.compile(r'\b(?:db|database|dbname)[=:] ?"?([^\s,;"]+)', re.I),
    re.compile(r"\S@(\[unknown\]|[^\s,;:\[\]]+)"),
)


def begins(line: str) -> bool:
    """Whether an entry begins here."""
    return not line.startswith("\t") and ENTRY.match(line) is not None


@dataclass
class _Open:
    """An entry as far as it was read; `parts` are its message and what was written about it, by label."""

    line: int
    severity: str
    prefix: str
    parts: dict[str, Body] = field(default_factory=dict)

    def entry(self) -> Entry:
        def text(label: str) -> str:
            return "\n".join(self.parts.get(label, ()))

        at_s, rest = _moment(self.prefix)
        return Entry(
            self.line,
            self.severity,
            text(self.severity),
            text("DETAIL"),
            text("CONTEXT"),
            _session(rest),
            _database(rest),
            at_s,
        )


def entries(lines: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    """The entries of a log; lines before the first one are left out."""
    opened: _Open | None = None
    body = Body()
    for number, line in lines:
        found = None if line.startswith("\t") else ENTRY.match(line)
        if found is None:
            body.append(line.removeprefix("\t"))
            continue
        label, body = found["label"], Body(found["message"])
        if re.fullmatch(SEVERITY, label):
            if opened:
                yield opened.entry()
            opened = _Open(number, label, found["prefix"], {label: body})
        elif opened:
            opened.parts[label] = body
    if opened:
        yield opened.entry()


def _moment(prefix: str) -> tuple[float | None, str]:
    """When an entry was written, and the prefix without that."""
    if found := MOMENT.search(prefix):
        return moment_s(found), prefix.replace(found[0], " ", 1)
    if found := EPOCH.search(prefix):
        return float(found[1]), prefix.replace(found[0], " ", 1)
    return None, prefix


def _session(prefix: str) -> str:
    if found := SESSION.search(prefix):
        return found[1]
    return next((found[1] for pattern in PROCESS if (found := pattern.search(prefix))), "")


def _database(prefix: str) -> str:
    name = next((found[1] for pattern in DATABASE if (found := pattern.search(prefix))), "")
    return "" if name == NONE else name
