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
from dbdyno.host.cache import Tell
from dbdyno.host.process import die_with_parent, how_it_ended
from dbdyno.user_data.dump import Dump, DumpText

CHUNK_BYTES = 1 << 20
CHUNKS_KEPT = 8
"""A client refuses what it was given a moment ago: its pipe and its own buffer are smaller than this."""
LINE_BYTES_KEPT = 64 << 10
"""So much of a line that goes on is kept to show its beginning."""
TOLD_EVERY_S = 10.0
SHOWN = 160
MESSAGE_BYTES = 16 << 10
QUOTED = re.compile(r"^LINE \d+: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Client:
    """The program that takes a dump's text on its standard input, from the `first_line` on. `refusal` finds
    what it complains of: the groups `line`, which counts from 1 if it is there, and `message`."""

    command: Sequence[str]
    environment: Mapping[str, str]
    refusal: re.Pattern[str]
    first_line: int = 1


Edit = Callable[[Iterator[bytes]], Iterator[bytes | Client]]
"""A dump's pieces on their way to the client: what goes there instead, with as many ends of lines. A piece
may end anywhere. A client among them takes the text from there on, once the one before has ended well."""


def as_it_is(pieces: Iterator[bytes]) -> Iterator[bytes | Client]:
    """The text without a change."""
    return pieces


def feed(dump: Dump, text: DumpText, client: Client, tell: Tell, edit: Edit = as_it_is) -> None:
    """Has the client take the whole text. Raises UserError with the line and the statement that it
    refuses."""
    sent = _Sent(dump, tell)
    parts = edit(sent.pieces(text))
    following = _fed(client, parts, sent, dump)
    while following is not None:
        following = _fed(following, parts, sent, dump)


def _fed(client: Client, parts: Iterator[bytes | Client], sent: _Sent, dump: Dump) -> Client | None:
    """Has a client take the text until another one follows, which is returned; None at the end."""
    following, is_cut = None, False
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
        try:
            try:
                for part in parts:
                    if isinstance(part, Client):
                        following = part
                        break
                    child.stdin.write(part)
                child.stdin.close()
            except BrokenPipeError:
                # It has ended, and says why.
                is_cut = True
            code = child.wait()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        if code or is_cut:
            errors.seek(0)
            said = errors.read(MESSAGE_BYTES).decode("utf-8", "replace").strip()
            raise _refused(dump, client, said or how_it_ended(code), sent)
    return following


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
        self._next, self._begun = 1, b""
        self._whole_bytes = dump.size_bytes

    def pieces(self, text: DumpText) -> Iterator[bytes]:
        """The text, each piece of which is noted before it is sent: the client may end in the midst of it."""
        while chunk := text.source.read(CHUNK_BYTES):
            self._chunks.append((self._next, self._begun + chunk))
            self._next += chunk.count(b"\n")
            self._begun = (self._begun + chunk).rpartition(b"\n")[2][:LINE_BYTES_KEPT]
            self._say(text.done_bytes)
            yield chunk

    def _say(self, done_bytes: int) -> None:
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


def _refused(dump: Dump, client: Client, said: str, sent: _Sent) -> UserError:
    found = client.refusal.search(said)
    if found is None:
        return UserError(f"{dump.path.name}: {said.splitlines()[-1]}", "load it by hand to see more")
    line = int(found["line"] or 1) + client.first_line - 1
    # Some clients quote the place, and count to the statement's end.
    quoted = QUOTED.search(said)
    statement = (quoted[1] if quoted else sent.line(line)).strip()
    shown = f"{statement[:SHOWN]}..." if len(statement) > SHOWN else statement
    where = f", at `{shown}`" if shown else ""
    return UserError(
        f"{dump.path}:{line}: {found['message'].strip()}{where}",
        "was the dump written for another version? mend this statement in a copy of the dump",
    )
