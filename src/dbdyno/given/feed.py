"""Feeding a dump's text to an engine's client, with progress, and with the place of what it refuses."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.errors import UserError
from dbdyno.given.dump import Dump, Text
from dbdyno.host.once import Tell
from dbdyno.host.process import die_with_parent, how_it_ended

CHUNK_BYTES = 1 << 20
CHUNKS_KEPT = 8
"""A client refuses what it was given a moment ago: its pipe and its own buffer are smaller than this."""
LINE_BYTES_MOST = 8 << 20
"""A longer line is passed on in pieces, because a dump that is packed can hold one larger than the memory."""
TOLD_EVERY_S = 10.0
SHOWN = 160
MESSAGE_BYTES = 16 << 10
QUOTED = re.compile(r"^LINE \d+: (.*)$", re.MULTILINE)

Edit = Callable[[bytes, bool], bytes]
"""A piece of a dump on its way to the client: what goes there instead. It is of whole lines, but for one that
is very long; whether it begins with the beginning of a line stands beside it."""
LineOf = Callable[[int], int]
"""A line of the dump, by its number among the lines that the client got."""


@dataclass(frozen=True)
class Client:
    """The program that takes a dump's text on its standard input. `refusal` finds what it complains of: the
    groups `line`, which counts from 1, and `message`."""

    command: Sequence[str]
    environment: Mapping[str, str]
    refusal: re.Pattern[str]


def as_it_is(lines: bytes, _begins: bool) -> bytes:
    """The lines without a change."""
    return lines


def same(line: int) -> int:
    """The line of a text that nothing was added to."""
    return line


def feed(
    dump: Dump, text: Text, client: Client, tell: Tell, edit: Edit = as_it_is, line_of: LineOf = same
) -> None:
    """Has the client take the whole text. Raises UserError with the line and the statement that it
    refuses."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            list(client.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=dict(client.environment),
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        assert child.stdin is not None
        sent = _Sent(dump, tell)
        try:
            try:
                for lines, begins in _lines_of(text):
                    # Before, because the client may end in the midst of them.
                    sent.lines(lines, text.done_bytes)
                    child.stdin.write(edit(lines, begins))
                child.stdin.close()
            except BrokenPipeError:
                # It has ended, and says why.
                pass
            code = child.wait()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        if code:
            errors.seek(0)
            said = errors.read(MESSAGE_BYTES).decode("utf-8", "replace").strip()
            raise _refused(dump, client, said or how_it_ended(code), sent, line_of)


def environment(without: Sequence[str]) -> dict[str, str]:
    """This process's environment without the variables that begin so: they would lead a client elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(tuple(without))}
    return {**kept, "LC_ALL": "C.UTF-8"}


class _Sent:
    """What has been sent: how far it is, and the last lines of it."""

    def __init__(self, dump: Dump, tell: Tell) -> None:
        self._dump = dump
        self._tell = tell
        self._began_s = self._told_s = time.monotonic()
        self._chunks: deque[tuple[int, bytes]] = deque(maxlen=CHUNKS_KEPT)
        self._next = 1
        self._whole_bytes = dump.size_bytes

    def lines(self, lines: bytes, done_bytes: int) -> None:
        self._chunks.append((self._next, lines))
        self._next += lines.count(b"\n")
        now_s = time.monotonic()
        if now_s - self._told_s >= TOLD_EVERY_S:
            self._told_s = now_s
            self._tell(f"loading {self._dump.path.name}: {self._far(done_bytes, now_s - self._began_s)}")

    def line(self, number: int) -> str:
        """The text of a line; empty where it is too long ago."""
        for first, chunk in reversed(self._chunks):
            if first <= number:
                lines = chunk.split(b"\n", number - first + 1)
                return lines[number - first].decode("utf-8", "replace") if number - first < len(lines) else ""
        return ""

    def _far(self, done_bytes: int, spent_s: float) -> str:
        if not done_bytes:
            return f"line {self._next:,}"
        left_s = spent_s * (self._whole_bytes / done_bytes - 1)
        return (
            f"{done_bytes / 1e6:,.0f} of {self._whole_bytes / 1e6:,.0f} MB read, about {left_s:,.0f} s left"
        )


def _lines_of(text: Text) -> Iterator[tuple[bytes, bool]]:
    """The text in pieces of whole lines; a very long line in several. Beside each, whether it begins with
    the beginning of a line."""
    rest, begins = b"", True
    while chunk := text.source.read(CHUNK_BYTES):
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline and not begins:
            last, newline, whole = (whole + newline).partition(b"\n")
            yield last + newline, begins
            begins = True
            if whole:
                yield whole, begins
        elif newline:
            yield whole + newline, begins
        if len(rest) > LINE_BYTES_MOST:
            yield rest, begins
            rest, begins = b"", False
    if rest:
        yield rest, begins


def _refused(dump: Dump, client: Client, said: str, sent: _Sent, line_of: LineOf) -> UserError:
    found = client.refusal.search(said)
    if found is None:
        return UserError(f"{dump.path.name}: {said.splitlines()[-1]}", "load it by hand to see more")
    line = line_of(int(found["line"]))
    # Some clients quote the place, and count to the statement's end.
    quoted = QUOTED.search(said)
    statement = (quoted[1] if quoted else sent.line(line)).strip()
    shown = f"{statement[:SHOWN]}..." if len(statement) > SHOWN else statement
    where = f", at `{shown}`" if shown else ""
    return UserError(
        f"{dump.path}:{line}: {found['message'].strip()}{where}",
        "was the dump written for another version? mend this statement in a copy of the dump",
    )
