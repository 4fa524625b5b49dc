"""The statements that PostgreSQL's log tells of.

`log_statement` writes a statement before it runs, `log_min_duration_statement` afterwards with its duration,
and auto_explain its plan: all three may tell of the same statement, which counts once. A statement with
parameters has three steps, and its time is that of all three.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dbdyno.traffic.postgresql import parameters, plans
from dbdyno.traffic.postgresql.entry import Entry
from dbdyno.traffic.seen import Seen

DURATION = re.compile(r"duration: (\d{1,12}(?:\.\d{1,6})?) ms(?:  (.*))?", re.DOTALL)
SIMPLE = re.compile(r"statement: (.*)", re.DOTALL)
STEP = re.compile(r"(parse|bind|execute fetch from|execute) ([^\n]{0,200}?): (.*)", re.DOTALL)
PLAN = re.compile(r"plan:\s(.*)", re.DOTALL)
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
        text = parameters.put_in(self.text, self.values).strip().removesuffix(";").strip()
        return Seen(
            text,
            self.entry.line,
            took_s,
            session=self.entry.session,
            at_s=self.began_s,
            database=self.entry.database,
            bound=bool(self.values),
            failed=self.failed,
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
class _Log:
    sessions: dict[str, _Session] = field(default_factory=dict)

    def take(self, entry: Entry) -> Iterator[Seen]:
        """The statements that are complete with this entry, and what is none."""
        if entry.severity != "LOG":
            self._failed(entry)
            rest = f"message {entry.severity}" if entry.severity else "entry that is cut off"
            yield Seen("", entry.line, rest=rest)
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
            yield from self._asked(session, entry, text, parameters.of_detail(entry.detail), took_s)
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
        found = plans.planned(plan)
        if found is None or entry.context:
            rest = "plan within a function" if entry.context else "plan without its statement"
            yield Seen("", entry.line, rest=rest)
            return
        before, values = session.pending, parameters.of_list(found.parameters)
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


def statements(entries: Iterable[Entry]) -> Iterator[Seen]:
    """What was executed, each statement when the log tells no more of it."""
    log = _Log()
    for entry in entries:
        yield from log.take(entry)
    yield from log.ended()
