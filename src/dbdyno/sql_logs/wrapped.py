"""Logs that another log holds: of syslog, journald and Heroku, of Docker and Kubernetes, and of clouds.

Some hold lines, which are read as the file would be that the server wrote. syslog holds pieces of messages,
those of all processes among each other: `[7-2]` is the second piece of the seventh message of its process
(`write_syslog` in PostgreSQL's `elog.c`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import UserError
from dbdyno.sql_logs.postgresql.entries import LogEntry, of_json
from dbdyno.sql_logs.postgresql.prefix import LINE
from dbdyno.sql_logs.seen import CUT_OFF, LogClock, LogReading

Lines = Iterable[tuple[int, str]]
Part = LogEntry | tuple[int, str, str, float | None] | tuple[str]
"""An entry, a line of a process with the moment that syslog tells, or a process whose entry has its end."""
BREAK = ""
"""A line in the place of one that is damaged: nothing before it goes on behind it."""
CONTAINER = re.compile(r"\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) ([FP]) (.*)", re.DOTALL)
SYSLOG = re.compile(
    r"(?:<\d{1,3}>)?(?P<when>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?:\S+ )?"
    r"(?P<tag>[^\s\[\]:]+)\[(?P<process>[\w.]*?\d+)\]: (?P<text>.*)",
    re.DOTALL,
)
NEW_SYSLOG = re.compile(
    r"(?:\d+ )?<\d{1,3}>1 (?P<when>\d{4}-\d\d-\d\dT\S+) \S+ (?P<tag>\S+) (?P<process>\d+) \S+ "
    r"(?:-|(?:\[.*?\])+) ?(?P<text>.*)",
    re.DOTALL,
)
OTHERS = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) "
    r"(?:\S+ )?[^\s\[\]:]+(?:\[[a-z.]+\])?: |-- .* --$"
)
"""A line of a program that does not tell its process, and journald's own."""
NUMBERED = re.compile(r"(?:\[[A-Z][A-Z_]*\] )?\[(\d+)(?:-(\d+))?\] (.*)", re.DOTALL)
"""Heroku writes the database's name, as it calls it, before the number."""
CONTROL = re.compile(r"#(0[0-3][0-7])")
"""A control character as syslog servers write it."""
IN_QUOTES = re.compile(r"'[^']*'")
PIECE_BYTES = 850
"""A piece that is longer was perhaps ended by its length (900 bytes), and not by a line's end."""
NOT_CERTAIN = "entry whose characters syslog has changed"
NEWEST_FIRST = "export it oldest first: gcloud logging read --order=asc, or turn the file round: tac FILE"


def _docker(told: dict[str, Any]) -> str | None:
    text = told.get("log")
    return text if isinstance(text, str) and ("stream" in told or "time" in told) else BREAK


def _cloud(told: dict[str, Any]) -> str | None:
    """Google's Cloud SQL: a message, or a line of one. What was done to the instance has no text."""
    if "protoPayload" in told:
        return None
    payload = told.get("jsonPayload")
    text = told.get("textPayload", payload.get("message") if isinstance(payload, dict) else None)
    return f"{text.rstrip(chr(10))}\n" if isinstance(text, str) else BREAK


def _azure(told: dict[str, Any]) -> str | None:
    """Azure: a message. Metrics and the like have none."""
    about = told.get("properties")
    if not isinstance(about, dict):
        return None if "metricName" in told else BREAK
    text = about.get("message")
    if text is None and "category" in told:
        return None
    return f"{text.rstrip(chr(10))}\n" if isinstance(text, str) else BREAK


OBJECTS: tuple[Callable[[dict[str, Any]], str | None], ...] = (_docker, _cloud, _azure)
"""A text, None for an object that is no entry of the server's, or what is `BREAK`."""


def _texts(head: list[str]) -> Callable[[str], str | None] | None:
    """What gives the text in a line of a file that begins so; None for a file that holds lines itself."""
    for line in head:
        if line.startswith("{") and (told := of_json(line)):
            for each in OBJECTS:
                if (text := each(told)) and (each is not _azure or LINE.match(text)):
                    return lambda line, each=each: _of_object(line, each)  # type: ignore[misc]
        if CONTAINER.match(line):
            return _of_container
    return None


def _of_object(line: str, text_in: Callable[[dict[str, Any]], str | None]) -> str | None:
    told = of_json(line)
    return BREAK if told is None else text_in(told)


def _of_container(line: str) -> str | None:
    found = CONTAINER.fullmatch(line)
    if found is None:
        return BREAK
    return found[2].removesuffix("\n") if found[1] == "P" else found[2]


def is_wrapped(head: list[str]) -> bool:
    """Whether a file that begins so holds the lines of another."""
    return _texts(head) is not None


def unwrapped(head: list[str], lines: Lines) -> Lines:
    """The lines of the log that a file holds, each with the number of the file's line. `head` is the file's
    beginning. Raises UserError for one that goes back in time."""
    text_in = _texts(head)
    if text_in is None:
        return lines
    times = [found[1] for line in head if (found := re.search(r'"timestamp": ?"(\d{4}-[^"]+)"', line))]
    if len(times) > 1 and times[0] > times[-1] and times == sorted(times, reverse=True):
        raise UserError("the log is in the order of its times backwards", NEWEST_FIRST)
    return _unwrapped(text_in, lines)


def _unwrapped(text_in: Callable[[str], str | None], lines: Lines) -> Iterator[tuple[int, str]]:
    held, start = "", 0
    for number, line in lines:
        text = text_in(line) if line.strip() else None
        if text is None:
            continue
        if text == BREAK:
            held = ""
            yield number, BREAK
            continue
        start = start if held else number
        *whole, held = f"{held}{text}".split("\n")
        for each in whole:
            yield start, f"{each}\n"
            start = number
    if held:
        yield start, held


def _syslog(line: str) -> re.Match[str] | None:
    return SYSLOG.fullmatch(line) or NEW_SYSLOG.fullmatch(line)


def syslog_begins(line: str) -> bool:
    """Whether this is a line of syslog, or an object of journald, with a message of PostgreSQL."""
    if line.startswith("{"):
        told = of_json(line)
        return told is not None and "MESSAGE" in told and LINE.match(_message(told)) is not None
    found = _syslog(line)
    return found is not None and LINE.match(found["text"]) is not None


def _message(told: dict[str, Any]) -> str:
    """journald writes a message that is no text as a list of bytes."""
    text = told["MESSAGE"]
    if isinstance(text, list) and all(isinstance(one, int) and 0 <= one < 256 for one in text):
        return bytes(text).decode("utf-8", "surrogateescape")
    return text if isinstance(text, str) else ""


@dataclass
class _Message:
    """What came of a message of a process so far: its number, and that of its last piece."""

    line: int
    number: int
    piece: int
    text: str
    at_s: float | None
    last_bytes: int
    certain: bool = True


class SyslogEntries:
    """Reads PostgreSQL's messages out of syslog, as lines of their processes."""

    def __init__(self, reading: LogReading) -> None:
        self._clock = LogClock(reading.zone)
        self._open: dict[str, _Message] = {}
        self._skipped: set[str] = set()

    def read(self, lines: Lines) -> Iterator[Part]:
        """The lines of one file, and what is missing in it."""
        for number, line in lines:
            found = self._piece(line)
            if found is not None:
                process, text, at_s = found
                if process:
                    yield from self._take(number, process, text, at_s)
            elif line.strip():
                # It may have been the last piece of any message.
                yield LogEntry(number, "", "", lacks=CUT_OFF)
                for message in self._open.values():
                    yield LogEntry(message.line, "", "", lacks=CUT_OFF)
                self._skipped |= self._open.keys()
                self._open.clear()
        for process in list(self._open):
            yield from self._whole(process)

    def _piece(self, line: str) -> tuple[str, str, float | None] | None:
        """The process that wrote a line, what it wrote, and when, where the year is told. The process is
        empty for what is of another program; None stands for what is damaged."""
        if line.startswith("{"):
            told = of_json(line)
            if told is None:
                return None
            micro = str(told.get("__REALTIME_TIMESTAMP", ""))
            at_s = int(micro) / 1e6 if micro.isdecimal() else None
            name = str(told.get("SYSLOG_PID") or told.get("_PID") or "")
            return (name, _message(told), at_s) if "MESSAGE" in told else ("", "", None)
        found = _syslog(line)
        if found is None:
            return ("", "", None) if OTHERS.match(line) else None
        when = found["when"]
        at_s = self._clock.at_s(when.replace("Z", "+00:00")) if when[:1].isdigit() else None
        return found["process"].rpartition(".")[2], found["text"].removesuffix("\n"), at_s

    def _take(self, number: int, process: str, text: str, at_s: float | None) -> Iterator[Part]:
        numbered = NUMBERED.fullmatch(text)
        message, piece, text = (
            (int(numbered[1]), int(numbered[2] or 0), numbered[3]) if numbered else (0, 0, text)
        )
        if numbered and not numbered[2] and message > 1 and not LINE.match(text):
            # Without sequence numbers, the only number is the piece's.
            message, piece = 0, message
        text = re.sub(r"\A#011", "\t", text)
        opened = self._open.get(process)
        if piece > 1:
            if opened and opened.piece + 1 == piece and message in (opened.number, 0):
                self._join(opened, piece, text)
            elif opened:
                del self._open[process]
                self._skipped.add(process)
                yield LogEntry(opened.line, "", "", lacks=CUT_OFF)
            elif process not in self._skipped:
                self._skipped.add(process)
                yield LogEntry(number, "", "", lacks=CUT_OFF)
            return
        if not numbered and text.startswith("\t") and opened:
            self._join(opened, 0, text)
            return
        if opened and opened.number and message and message != opened.number + 1:
            # A process numbers its messages one by one. Where one is missing, or the file goes back, the last
            # pieces of the one before it may be missing as well.
            del self._open[process]
            yield LogEntry(opened.line, "", "", lacks=CUT_OFF)
        else:
            yield from self._whole(process)
        self._skipped.discard(process)
        self._open[process] = _Message(
            number, message, piece, text, at_s, len(text.encode("utf-8", "replace"))
        )

    def _join(self, opened: _Message, piece: int, text: str) -> None:
        long = opened.last_bytes + len(text.split()[0] if text.split() else "") >= PIECE_BYTES
        more = LINE.match(text)
        begins = text.startswith("\t") or (more is not None and more["prefix"] != "" and not long)
        # A tab behind a long piece may be one of the statement's own, at which it was cut.
        opened.certain &= not (long and text.startswith("\t"))
        opened.text += f"\n{text}" if begins else text
        opened.piece, opened.last_bytes = piece, len(text.encode("utf-8", "replace"))

    def _whole(self, process: str) -> Iterator[Part]:
        """Reads the message that a process wrote before, as the text that the server made."""
        message = self._open.pop(process, None)
        if message is None:
            return
        text = message.text
        if CONTROL.search(text):
            message.certain &= not any(CONTROL.search(quoted) for quoted in IN_QUOTES.findall(text))
            text = CONTROL.sub(lambda found: chr(int(found[1], 8)), text)
        if not message.certain:
            yield (process,)
            yield LogEntry(message.line, "", "", lacks=NOT_CERTAIN)
            return
        for line in text.split("\n"):
            yield message.line, f"{line}\n", process, message.at_s


def texts_of(lines: Lines) -> Iterator[tuple[int, str]]:
    """The first pieces of syslog's messages, as lines of the log that they hold."""
    for number, line in lines:
        told = of_json(line) if line.startswith("{") else None
        found = None if told else _syslog(line)
        text = _message(told) if told and "MESSAGE" in told else found["text"] if found else ""
        numbered = NUMBERED.fullmatch(text)
        yield number, numbered[3] if numbered else text


def cluster_begins(line: str) -> bool:
    """Whether this is an object of CloudNativePG with an entry of PostgreSQL's."""
    return line.startswith("{") and '"record"' in line and '"error_severity"' in line
