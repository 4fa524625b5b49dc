"""The statements that PostgreSQL's log tells of.

`log_statement` writes a statement before it runs, `log_min_duration_statement` afterwards with its duration,
and auto_explain its plan: all three may tell of the same statement, which counts once. A statement with
parameters has three steps, and its time is that of all three.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dbdyno.sql_logs.digest import Dialect, Kind, tokens
from dbdyno.sql_logs.postgresql.entries import Entry
from dbdyno.sql_logs.seen import Seen

DURATION = re.compile(r"duration: (\d{1,12}(?:\.\d{1,6})?) ms(?:  (.*))?", re.DOTALL)
SIMPLE = re.compile(r"statement: (.*)", re.DOTALL)
STEP = re.compile(r"(parse|bind|execute fetch from|execute) ([^\n]{0,200}?): (.*)", re.DOTALL)
PLAN = re.compile(r"plan:\s(.*)", re.DOTALL)
LIST = re.compile(r"(?:query )?parameters: ", re.IGNORECASE)
VALUE = re.compile(r"\$(\d{1,5}) = (NULL|'(?:[^']|'')*')(?:, |\s*\Z)")
CUT = "...'"
"""Ends a value that `log_parameter_max_length` cut."""
BLANK = " \t\r\n"
STRING = r'"(?:[^"\\]|\\.)*"'
OBJECT = re.compile(
    rf'\s*\{{?\s*"?Query Text"?: ({STRING})(?:,?\s*"?Query Parameters"?: ({STRING}))?', re.DOTALL
)
"""JSON and YAML write both as strings of JSON."""
XML = re.compile(
    r".*?<Query-Text>(.*?)</Query-Text>(?:\s*<Query-Parameters>(.*?)</Query-Parameters>)?", re.DOTALL
)
TEXT = re.compile(
    r"\s*Query Text: (.*?)(?:\n\s*Query Parameters: (.*?))?(?:\n[^\n]*\((?:cost|actual|rows)[ =][^\n]*.*)?\Z",
    re.DOTALL,
)
BEGUN = "connection authorized: "
ENDED = "disconnection: session time"


@dataclass
class _Pending:
    """A statement whose session may still tell more of it. A plan's time does not count the planning, so it
    serves where no other is told."""

    entry: Entry
    text: str
    values: dict[str, str]
    took_s: float | None = None
    began_s: float | None = None
    plan_took_s: float | None = None
    failed: bool = False

    def seen(self) -> Seen:
        took_s = self.plan_took_s if self.took_s is None else self.took_s
        text = put_in(self.text, self.values).strip(BLANK).removesuffix(";").strip(BLANK)
        return Seen(
            text,
            self.entry.line,
            took_s,
            session=self.entry.session,
            at_s=self.began_s,
            database=self.entry.database,
            bound=bool(self.values),
            failed=self.failed,
            whole_s=self.entry.at_s if self.entry.whole else None,
        )


@dataclass
class _Session:
    """What one connection asked last, and how long the steps before the next statement took."""

    pending: _Pending | None = None
    ahead_s: float = 0.0

    def flushed(self) -> Iterator[Seen]:
        if self.pending and self.pending.text.strip():
            yield self.pending.seen()
        self.pending = None


@dataclass
class Messages:
    """The statements of one log, whose files may follow one another."""

    sessions: dict[str, _Session] = field(default_factory=dict)

    def take(self, entry: Entry) -> Iterator[Seen]:
        """The statements that are complete with this entry, and what is none."""
        if entry.severity != "LOG":
            self._failed(entry)
            yield Seen("", entry.line, rest=entry.lacks or f"message {entry.severity}")
            return
        session = self.sessions.setdefault(entry.session, _Session())
        took_s, message = None, entry.message
        if found := DURATION.fullmatch(message):
            took_s, message = float(found[1]) / 1000, found[2] or ""
        if took_s is not None and not message:
            self._timed(session, took_s)
        elif took_s is not None and (plan := PLAN.fullmatch(message)):
            yield from self._planned(session, entry, plan[1], took_s)
        elif step := STEP.fullmatch(message):
            yield from self._step(session, entry, step, took_s)
        elif simple := SIMPLE.fullmatch(message):
            yield from self._asked(session, entry, simple[1], {}, took_s)
        elif message.startswith(ENDED):
            yield from session.flushed()
            self.sessions.pop(entry.session, None)
            yield _command(entry, "disconnection")
        else:
            yield _command(entry, "connection" if message.startswith(BEGUN) else "message LOG")

    def ended(self) -> Iterator[Seen]:
        """The statements of which no more is told."""
        for session in self.sessions.values():
            yield from session.flushed()

    def _failed(self, entry: Entry) -> None:
        """An error is of the statement before it, where that was logged before it ran and had no end yet."""
        session = self.sessions.get(entry.session) if entry.severity == "ERROR" and entry.session else None
        if session and session.pending and session.pending.took_s is None:
            session.pending.failed = True

    def _timed(self, session: _Session, took_s: float) -> None:
        """A duration alone (`log_duration`) is of the statement before it."""
        pending = session.pending
        if pending and pending.took_s is None and pending.entry.session:
            pending.took_s = took_s

    def _step(
        self, session: _Session, entry: Entry, step: re.Match[str], took_s: float | None
    ) -> Iterator[Seen]:
        kind, _, text = step.groups()
        if kind == "execute":
            yield from self._asked(session, entry, text, of_detail(entry.detail), took_s)
        elif kind == "execute fetch from":
            yield Seen("", entry.line, rest="fetch of more rows")
        else:
            session.ahead_s += took_s or 0.0
            yield Seen("", entry.line, rest=f"{kind} of a statement")

    def _asked(
        self, session: _Session, entry: Entry, text: str, values: dict[str, str], took_s: float | None
    ) -> Iterator[Seen]:
        whole_s = None if took_s is None else took_s + session.ahead_s
        session.ahead_s = 0.0
        asked = _Pending(entry, text, values, whole_s, _began_s(entry, whole_s))
        before = session.pending
        if before and before.plan_took_s is not None and before.took_s is None and before.text == text:
            asked.plan_took_s, asked.values = before.plan_took_s, values or before.values
        else:
            yield from session.flushed()
        session.pending = asked

    def _planned(self, session: _Session, entry: Entry, plan: str, took_s: float) -> Iterator[Seen]:
        found = planned(plan)
        if found is None or entry.context:
            rest = "plan within a function" if entry.context else "plan without its statement"
            yield Seen("", entry.line, rest=rest)
            return
        before, values = session.pending, of_list(found.parameters)
        if before and before.plan_took_s is None and before.text == found.text:
            before.plan_took_s, before.values = took_s, before.values or values
            return
        yield from session.flushed()
        session.pending = _Pending(
            entry, found.text, values, began_s=_began_s(entry, took_s), plan_took_s=took_s
        )


def _command(entry: Entry, rest: str) -> Seen:
    return Seen("", entry.line, rest=rest, session=entry.session, at_s=entry.at_s, database=entry.database)


def _began_s(entry: Entry, took_s: float | None) -> float | None:
    return None if entry.at_s is None else entry.at_s - (took_s or 0.0)


def of_detail(detail: str) -> dict[str, str]:
    """`$1` and its like with their literals of SQL, from a line of DETAIL; empty where it tells none."""
    detail = detail.strip(BLANK)
    found = LIST.match(detail)
    return of_list(detail[found.end() :]) if found else {}


def of_list(text: str) -> dict[str, str]:
    """Of `$1 = 'a', $2 = NULL`; empty where that is not a list from its begin to its end."""
    values, at = dict[str, str](), 0
    while at < len(text):
        found = VALUE.match(text, at)
        if found is None:
            return {}
        values[f"${found[1]}"] = found[2]
        at = found.end()
    return values


def put_in(statement: str, values: Mapping[str, str]) -> str:
    """A statement with literals in the place of the parameters whose values are known. One that was cut
    stays unknown."""
    if not values:
        return statement
    known = {name: literal for name, literal in values.items() if not literal.endswith(CUT)}
    return "".join(
        known.get(token.text, token.text) if token.kind is Kind.PARAMETER else token.text
        for token in tokens(statement, Dialect.POSTGRESQL)
    )


@dataclass(frozen=True)
class Planned:
    """A statement of which auto_explain wrote the plan, and its parameters as they were written."""

    text: str
    parameters: str


def planned(plan: str) -> Planned | None:
    """The statement of what stands behind `plan:`; None where it tells none."""
    if found := OBJECT.match(plan):
        return Planned(_string(found[1]), _string(found[2] or '""'))
    if found := XML.match(plan):
        return Planned(html.unescape(found[1]), html.unescape(found[2] or ""))
    if found := TEXT.match(plan):
        return Planned(found[1], found[2] or "")
    return None


def _string(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return ""
