"""A statement as a log tells of it, and moments as logs write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dbdyno.errors import UserError


@dataclass(frozen=True)
class SeenStatement:
    """A statement that was executed `times`, in `took_s` all together, or None where the log does not tell.
    `line` is where it begins; `rest` names what is no statement (a command of the protocol), or why one is
    left out. Bytes that are no UTF-8 stand in `text` as `surrogateescape` writes them.

    `session` is the connection, as the log names it, and `database` the one that it was in; both are empty
    where the log does not tell. `at_s` is when the statement began, in seconds since 1970. `whole_s` is the
    whole second that the log tells where it has no finer time, None elsewhere. `bound` tells that the values
    of `$1` were put into the text, as texts in quotes whatever their type. `file` is empty where there is
    one alone. `rows` were sent, `affected` changed and `examined` read, None where the log does not tell;
    `failed` says that it ended in an error. `sampled` says that the log holds one of several statements,
    which `times` weighs.
    """

    text: str
    line: int
    took_s: float | None = None
    times: int = 1
    rest: str = ""
    session: str = ""
    at_s: float | None = None
    database: str = ""
    bound: bool = False
    file: str = ""
    rows: int | None = None
    affected: int | None = None
    failed: bool = False
    whole_s: float | None = None
    sampled: bool = False
    examined: int | None = None


@dataclass(frozen=True)
class LogReading:
    """What a user says of a log. `prefix` is PostgreSQL's `log_line_prefix`, None where it is to be found in
    the file. `zone` names the time zone of local times, and `whole` says that no file was cut, so that its
    last entry counts. `notes` are sentences on what was found in the file. Values are replaced by a hash of
    the `key`, and stay where that is empty."""

    prefix: str | None = None
    zone: str = ""
    whole: bool = False
    notes: tuple[str, ...] = ()
    key: bytes = b""


def is_text(text: str) -> bool:
    """Whether all bytes of a text are UTF-8."""
    return text.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in text)


CUT_OFF = "entry that is cut off"
"""What was begun in a log and has no end in it, or an end that is not certain."""
LAST = "last entry, which may go on behind the end of the log (--whole takes it)"
UNIVERSAL = frozenset({"", "Z", "UTC", "GMT"})
OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?")
BACK_S = 600
"""A log is in the order of its writing, but for so much: a moment further back is one hour later in the
night in which clocks are put back."""
HOW_ZONE = "name the server's time zone, such as --zone Europe/Berlin"


@dataclass
class LogClock:
    """Moments of one log in seconds since 1970. Local ones count as UTC unless a zone is named."""

    name: str = ""
    _zone: ZoneInfo | None = field(init=False)
    _last_s: float = field(default=float("-inf"), init=False)
    _seen: str = field(default="", init=False)

    def __post_init__(self) -> None:
        try:
            self._zone = ZoneInfo(self.name) if self.name else None
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise UserError(f"there is no time zone {self.name!r}", HOW_ZONE) from None

    def at_s(self, text: str, zone: str = "") -> float | None:
        """Of `2026-11-22T16:00:00.000001`, with a blank in the place of the T, or `261122  6:00:01`, in the
        zone that stands behind it; None for what is no moment. Raises UserError where the zone's name
        changes and nobody says where that is."""
        try:
            moment = _parsed(text)
            if found := OFFSET.fullmatch(zone):
                minutes = int(found[2]) * 60 + int(found[3] or 0)
                shift = timedelta(minutes=-minutes if found[1] == "-" else minutes)
                return moment.replace(tzinfo=timezone(shift)).timestamp()
            if moment.tzinfo is not None:
                return moment.timestamp()
            if zone in UNIVERSAL and (zone or self._zone is None):
                return moment.replace(tzinfo=UTC).timestamp()
            return self._local_s(moment, zone)
        except (ValueError, OverflowError):
            return None

    def _local_s(self, moment: datetime, zone: str) -> float:
        if self._zone is None:
            if self._seen and self._seen != zone:
                raise UserError(f"the log's times are in {self._seen} and in {zone}", HOW_ZONE)
            self._seen = zone
            return moment.replace(tzinfo=UTC).timestamp()
        either = [moment.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1)]
        named = [each for each in either if each.tzname() == zone]
        first, second = (each.timestamp() for each in either)
        if named:
            at_s = named[0].timestamp()
        else:
            at_s = second if first < self._last_s - BACK_S and second > first else first
        self._last_s = max(self._last_s, at_s)
        return at_s


def _parsed(text: str) -> datetime:
    if text[4:5] == "-":
        return datetime.fromisoformat(text)
    parts = " ".join(text.split())
    return datetime.strptime(parts, "%y%m%d %H:%M:%S.%f" if "." in parts else "%y%m%d %H:%M:%S")
