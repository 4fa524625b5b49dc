"""The file of a recording: what each session of a log asked, in its order and when.

`docs/reference/recording.md` has its form, and `crates/driver/src/workload/replay/recording.rs` reads it.
Statements are written one after another as they come, each with the place of the next one of its session, so
a recording may be larger than memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from dbdyno.errors import UserError
from dbdyno.frozen import Frozen

MAGIC = b"dynorply"
VERSION = 1
HEADER = struct.Struct("<8sIIQQQQ")
SESSION = struct.Struct("<QQQIIQ")
STATEMENT = struct.Struct("<QQQIIIIQQ")
NEXT = struct.Struct("<QI")
NEXT_AT = 16
"""Where the place of the next statement stands in a statement."""
OPENING_SEEN, FAILED = 1, 1
UNKNOWN = 2**64 - 1
NS_PER_S = 1_000_000_000
BUFFER_BYTES = 1 << 22
ABOUT_BYTES_MOST = 1 << 30
MEND = "make it again: dyno init replay --from LOG"
MAKE = "make one from a log: dyno init replay --from LOG -o NAME.replay"


class StatementKind(Frozen):
    """Statements that differ in their values alone; `kind` is the place of their verb in `About.kinds`."""

    digest: str
    kind: int


class About(Frozen):
    """What a recording says of itself. `source` is the log's name, `log` what it is. `began_unix_s` is when
    the first session began, which is `origin_ns` in the file. `open_most` sessions were open at one time.
    `whole_seconds` says that the log has no finer times. `left_out` counts what is not in the recording, by
    what it is."""

    protocol: str
    source: str
    log: str
    began_unix_s: float
    origin_ns: int
    length_ns: int
    sessions: int
    open_most: int
    count: int
    whole_seconds: bool
    databases: tuple[str, ...]
    kinds: tuple[str, ...]
    statements: tuple[StatementKind, ...]
    left_out: dict[str, int]

    @property
    def length_s(self) -> float:
        return self.length_ns / NS_PER_S


def about(path: Path) -> About:
    """What a recording says of itself. Raises UserError for a file that is none."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER.size)
            if len(head) < HEADER.size or not head.startswith(MAGIC):
                raise UserError(f"{path} is no recording", MAKE)
            _, version, _, _, _, offset, size = HEADER.unpack(head)
            if version != VERSION:
                raise UserError(f"{path} is a recording of version {version}, not {VERSION}", MEND)
            if not offset:
                raise UserError(f"{path} was never finished", MEND)
            if size > ABOUT_BYTES_MOST or offset + size > path.stat().st_size:
                raise UserError(f"{path} is damaged or was cut short", MEND)
            file.seek(offset)
            return About.model_validate_json(file.read(size))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", MAKE) from None
    except ValidationError:
        raise UserError(f"{path} is damaged", MEND) from None


@dataclass(frozen=True)
class StatementPlace:
    """Where a statement stands in the file, and how long it is there."""

    offset: int
    size: int


@dataclass(frozen=True)
class RecordedStatement:
    """A statement as the file holds it; times in nanoseconds, None where the log does not tell."""

    text: str
    due_ns: int
    took_ns: int | None
    number: int
    database: int
    failed: bool
    rows: int | None
    affected: int | None


@dataclass(frozen=True)
class RecordedSession:
    """A session as the file holds it."""

    opened_ns: int
    closed_ns: int
    opening_seen: bool
    first: StatementPlace
    statements: int


class RecordingFile:
    """Writes a recording. A context manager: what ends in an error leaves no file behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._buffer = bytearray(HEADER.pack(MAGIC, VERSION, 0, 0, 0, 0, 0))
        self._written = 0

    def __enter__(self) -> Self:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError as error:
            raise UserError(f"{self._path} cannot be written: {error.strerror}", "give another -o") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        if error is not None:
            self._path.unlink(missing_ok=True)

    def add(self, statement: RecordedStatement, before: StatementPlace | None) -> StatementPlace:
        """Writes a statement behind the one `before` it in its session, and gives its place."""
        text = statement.text.encode("utf-8", "replace")
        place = StatementPlace(self._end, STATEMENT.size + len(text))
        self._buffer += STATEMENT.pack(
            statement.due_ns,
            _told(statement.took_ns),
            0,
            0,
            statement.number,
            FAILED if statement.failed else 0,
            statement.database,
            _told(statement.rows),
            _told(statement.affected),
        )
        self._buffer += text
        if before is not None:
            self._put(before.offset + NEXT_AT, NEXT.pack(place.offset, place.size))
        if len(self._buffer) >= BUFFER_BYTES:
            self._flush()
        return place

    def finish(self, visits: Iterable[RecordedSession], about: About) -> None:
        """Writes the sessions in the order of their opening, and what the recording says of itself."""
        sessions_offset, count = self._end, 0
        for visit in sorted(visits, key=lambda visit: visit.opened_ns):
            flags = OPENING_SEEN if visit.opening_seen else 0
            first = visit.first
            self._buffer += SESSION.pack(
                visit.opened_ns, visit.closed_ns, first.offset, first.size, flags, visit.statements
            )
            count += 1
        about_offset, text = self._end, about.model_dump_json().encode()
        self._buffer += text
        self._flush()
        # The header comes last: without it the file counts as not finished.
        header = HEADER.pack(MAGIC, VERSION, 0, sessions_offset, count, about_offset, len(text))
        os.pwrite(self._file, header, 0)

    @property
    def _end(self) -> int:
        return self._written + len(self._buffer)

    def _put(self, offset: int, content: bytes) -> None:
        if offset >= self._written:
            start = offset - self._written
            self._buffer[start : start + len(content)] = content
        else:
            # A statement is flushed as a whole.
            os.pwrite(self._file, content, offset)

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        while view:
            written = os.pwrite(self._file, view, self._written)
            self._written, view = self._written + written, view[written:]
        view.release()
        self._buffer = bytearray()


def _told(number: int | None) -> int:
    return UNKNOWN if number is None else number
