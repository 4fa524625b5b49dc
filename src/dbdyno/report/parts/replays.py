"""What became of a recording that was played: a row for each variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.replays import Replays
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Notes, Section, table
from dbdyno.report.words import numbers

TITLE = "The replay"
HEADS = (
    "variant",
    "took s",
    "late: server",
    "late: driver",
    "lag ms: server",
    "lag ms: driver",
    "failed",
    "rows",
)
NOTE = (
    "Late: statements that began more than 1 ms after their time, by the server where it had not answered "
    "the session's statement before, by the driver where that woke late. Lag: its 99th percentile. Failed: "
    "statements that did not fail in the recording, and those never sent. Rows: answers whose number of rows "
    "was another than in the recording."
)


def sections(found: Sequence[Replays]) -> Iterator[Section]:
    """The table; nothing where no recording was played."""
    if found:
        yield Section(TITLE, (table(HEADS, rows(found), dense=True), Notes((NOTE,))), aside=lead(found))


def lead(found: Sequence[Replays]) -> str:
    """How long what was played lasts, and how many statements each variant was sent."""
    first = found[0]
    return f"The part that was played lasts {number_text(first.recorded_s)} s in the recording."


def rows(found: Sequence[Replays]) -> list[list[str]]:
    """A row per variant."""
    return [
        [
            one.variant,
            number_text(one.took_s),
            _late(one, one.late_by_server),
            _late(one, one.late_by_driver),
            _lag(one.server_lag_p99_ms),
            _lag(one.driver_lag_p99_ms),
            numbers.part_text(one.failed + one.unsent, one.statements + one.unsent),
            numbers.part_text(one.rows_differ, one.rows_compared) if one.rows_compared else numbers.DASH,
        ]
        for one in found
    ]


def _late(one: Replays, late: int) -> str:
    """Where nothing was due by the clock nothing was late."""
    return numbers.DASH if one.server_lag_p99_ms is None else numbers.part_text(late, one.statements)


def _lag(lag_ms: float | None) -> str:
    return numbers.DASH if lag_ms is None else number_text(lag_ms)
