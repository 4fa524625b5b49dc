"""From a log to a recording: sessions told apart, moments in order, and what cannot be played left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.sql_logs.digest import Dialect, TokenKind, shaped
from dbdyno.sql_logs.formats import LogFormat
from dbdyno.sql_logs.read import CERTAIN
from dbdyno.sql_logs.recording import (
    NS_PER_S,
    About,
    RecordedSession,
    RecordedStatement,
    RecordingFile,
    StatementKind,
    StatementPlace,
)
from dbdyno.sql_logs.seen import LAST, LogReading, SeenStatement, is_text

EARLIEST_S = 86_400
"""A log tells of a statement when it is over, so one may have begun before the first that is told."""
DIGESTED_CHARACTERS = 4_096
"""A statement is told apart by its beginning."""
DIGESTS_MOST = 20_000
VERBS_MOST = 15
OTHER = "other"
OPENS = frozenset({"command Connect", "connection"})
CLOSES = frozenset({"command Quit", "disconnection"})
ENDS_OTHERS = frozenset({"KILL", "SHUTDOWN", "RESTART"})
"""What ends another connection, or the server: in a replay connections have other numbers."""
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
ASKS = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
"""Statements whose rows a log counts as the server's answer does."""
UNTOLD = "without a session or a time"
SAMPLED = "a replay needs all of them: SET GLOBAL log_slow_rate_limit = 1; dyno init workload weighs them"
HOW = "log for longer, with the sessions and the times: log_slow_verbosity, or log_line_prefix with %m and %c"


class RecordedLog(Protocol):
    """A log as far as a recording needs it."""

    @property
    def kind(self) -> LogFormat: ...

    @property
    def reading(self) -> LogReading: ...

    @property
    def statements(self) -> Iterable[SeenStatement]: ...


@dataclass(frozen=True)
class LoggedStatement:
    """A statement or command of a log, at a moment in seconds since 1970. Where the log writes whole
    seconds, `coarse`, the moment is a guess."""

    seen: SeenStatement
    at_s: float
    coarse: bool


def in_time(log: Iterable[SeenStatement], left_out: Counter[str]) -> Iterator[LoggedStatement]:
    """The entries of a log that tell their session and time. Where a log writes whole seconds, those of one
    second are spread over it in the log's order."""
    waiting: list[SeenStatement] = []
    for seen in log:
        if seen.at_s is None or not seen.session:
            left_out[seen.rest or UNTOLD] += seen.times
            continue
        whole_s = _whole_s(seen)
        if waiting and _whole_s(waiting[0]) != whole_s:
            yield from _spread(waiting)
            waiting = []
        if whole_s is None:
            yield LoggedStatement(seen, seen.at_s, False)
        else:
            waiting.append(seen)
    yield from _spread(waiting)


def _whole_s(seen: SeenStatement) -> float | None:
    """The whole second that a log tells of a statement; None where it tells more."""
    if seen.whole_s is None and seen.at_s is not None and seen.at_s.is_integer():
        return seen.at_s
    return seen.whole_s


def _spread(second: list[SeenStatement]) -> Iterator[LoggedStatement]:
    for place, seen in enumerate(second):
        yield LoggedStatement(seen, (seen.at_s or 0.0) + place / len(second), len(second) > 1)


@dataclass
class _Session:
    """A connection while the log tells of it. From `free_ns` on it could send its next statement."""

    opened_ns: int
    opening_seen: bool
    free_ns: int
    due_ns: int = 0
    first: StatementPlace | None = None
    last: StatementPlace | None = None
    statements: int = 0

    def visit(self, closed_ns: int) -> RecordedSession | None:
        """None where it sent nothing that can be played."""
        if self.first is None:
            return None
        closed_ns = max(closed_ns, self.free_ns)
        return RecordedSession(self.opened_ns, closed_ns, self.opening_seen, self.first, self.statements)


@dataclass(frozen=True)
class _Sort:
    """What a statement's text says of it. It has `places` where its values are not logged."""

    digest: str
    verb: str
    places: bool


@dataclass
class _Sorts:
    """What statements are."""

    dialect: Dialect

    def of(self, text: str) -> _Sort:
        taken = shaped(text[:DIGESTED_CHARACTERS], self.dialect)
        places = any(value.kind is TokenKind.PARAMETER for value in taken.values)
        return _Sort(taken.digest, taken.verb, places)


@dataclass
class _Recorder:
    """Takes a log's entries in their order, and writes what can be played."""

    file: RecordingFile
    sorts: _Sorts
    database: str
    left_out: Counter[str]
    open: dict[str, _Session] = field(default_factory=dict)
    visits: list[RecordedSession] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    verbs: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    databases: dict[str, int] = field(default_factory=dict)
    base_ns: int | None = None
    whole_seconds: bool = False

    def take(self, told: LoggedStatement) -> None:
        seen, at_ns = told.seen, self._at_ns(told.at_s)
        self.whole_seconds |= told.coarse
        if seen.rest in OPENS:
            self._close(seen.session, at_ns)
            self.open[seen.session] = _Session(at_ns, True, at_ns)
        elif seen.rest in CLOSES:
            self._close(seen.session, at_ns)
        elif seen.rest:
            self.left_out[seen.rest] += seen.times
        elif seen.sampled:
            raise UserError(f"the log holds one of every {seen.times:,} statements alone", SAMPLED)
        elif self.database and seen.database and seen.database != self.database:
            self.left_out["in another database"] += 1
        else:
            self._write(seen, at_ns, told.coarse)

    def close_all(self) -> None:
        for session in list(self.open):
            self._close(session, 0)

    def _at_ns(self, at_s: float) -> int:
        # Microseconds, because more of a moment does not fit into a float.
        at_ns = round(at_s * 1e6) * 1000
        if self.base_ns is None:
            self.base_ns = at_ns - EARLIEST_S * NS_PER_S
        return max(0, at_ns - self.base_ns)

    def _close(self, name: str, at_ns: int) -> None:
        session = self.open.pop(name, None)
        visit = session.visit(at_ns) if session else None
        if visit is not None:
            self.visits.append(visit)

    def _write(self, seen: SeenStatement, at_ns: int, coarse: bool) -> None:
        sort = self.sorts.of(seen.text)
        if why := self._why_not(sort, seen.text, seen.database):
            self.left_out[why] += 1
            return
        session = self.open.setdefault(seen.session, _Session(at_ns, False, at_ns))
        took_ns = None if seen.took_s is None else round(seen.took_s * NS_PER_S)
        due_ns = max(at_ns, session.opened_ns, session.free_ns if coarse else session.due_ns)
        statement = RecordedStatement(
            text=seen.text,
            due_ns=due_ns,
            took_ns=took_ns,
            number=self._number(sort),
            database=self.databases.setdefault(seen.database, len(self.databases)),
            failed=seen.failed,
            rows=seen.rows if sort.verb in ASKS else None,
            affected=seen.affected if sort.verb in CHANGES else None,
        )
        session.last = self.file.add(statement, session.last)
        session.first = session.first or session.last
        session.statements += 1
        session.due_ns = due_ns
        session.free_ns = max(session.free_ns, due_ns + (took_ns or 0))

    def _why_not(self, sort: _Sort, text: str, database: str) -> str:
        if sort.verb in ENDS_OTHERS:
            return "that end a connection or the server"
        if sort.places and sort.verb != "PREPARE":
            # The places of a PREPARE are part of its text.
            return "whose values are not logged"
        if not is_text(text) or not is_text(database):
            return "with bytes that are no UTF-8, which the driver cannot send"
        if sort.verb == "COPY" or (sort.verb == "LOAD" and " LOCAL " in text[:DIGESTED_CHARACTERS].upper()):
            return "that read or write a file of the client's"
        return ""

    def _number(self, sort: _Sort) -> int:
        """The number of a statement's digest. Beyond so many they have one together for each verb."""
        verb = sort.verb.lower() or OTHER
        self.counts[verb] += 1
        digest = sort.digest
        if digest not in self.numbers and len(self.numbers) >= DIGESTS_MOST:
            digest = f"{verb} ..."
        if digest not in self.numbers:
            self.numbers[digest] = len(self.numbers)
            self.verbs.append(verb)
        return self.numbers[digest]


def record(log: RecordedLog, source: str, output: Path, database: str = "") -> About:
    """Makes a recording of a log at `output`. Of several databases `database` names one; empty takes all.
    Raises UserError where nothing can be played."""
    left_out: Counter[str] = Counter()
    with RecordingFile(output) as file:
        wanted = _driver.sql_database(database, log.reading.key)
        recorder = _Recorder(file, _Sorts(log.kind.dialect), wanted, left_out)
        for told in in_time(log.statements, left_out):
            recorder.take(told)
        recorder.close_all()
        if not recorder.visits:
            why = ", ".join(f"{count:,} {what}" for what, count in left_out.most_common()) or "it is empty"
            raise UserError(
                f"{source} holds nothing that can be played: {why}", CERTAIN if LAST in left_out else HOW
            )
        found = _about(recorder, log.kind.name, source)
        file.finish(recorder.visits, found)
    return found


def _about(recorder: _Recorder, kind: str, source: str) -> About:
    visits = recorder.visits
    origin_ns = min(visit.opened_ns for visit in visits)
    kinds = [verb for verb, _ in recorder.counts.most_common(VERBS_MOST)]
    if len(recorder.counts) > len(kinds):
        kinds.append(OTHER)
    places = {verb: place for place, verb in enumerate(kinds)}
    return About(
        protocol="mysql" if recorder.sorts.dialect is Dialect.MYSQL else "postgresql",
        source=source,
        log=kind,
        began_unix_s=((recorder.base_ns or 0) + origin_ns) / NS_PER_S,
        origin_ns=origin_ns,
        length_ns=max(visit.closed_ns for visit in visits) - origin_ns,
        sessions=len(visits),
        open_most=_open_most(visits),
        count=sum(recorder.counts.values()),
        whole_seconds=recorder.whole_seconds,
        databases=tuple(recorder.databases),
        kinds=tuple(kinds),
        statements=tuple(
            StatementKind(digest=digest, kind=places.get(verb, len(kinds) - 1))
            for digest, verb in zip(recorder.numbers, recorder.verbs, strict=True)
        ),
        left_out=dict(recorder.left_out),
    )


def _open_most(visits: list[RecordedSession]) -> int:
    """How many sessions were open at one time at most. One that closes as another opens is not counted."""
    changes = sorted(change for visit in visits for change in ((visit.opened_ns, 1), (visit.closed_ns, -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return max(1, most)
