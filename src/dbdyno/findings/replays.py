"""What became of a recording that was played: a row for each variant.

What became of a recording that trials played, summed for each variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import HAS_REPLAY
from dbdyno.analyse.found import Replays
from dbdyno.driver.tally import Replay
from dbdyno.records.metrics import number_text
from dbdyno.records.record import Outcome, Record
from dbdyno.report.document import Notes, Section, table
from dbdyno.report.words import numbers


def replays(records: Sequence[Record]) -> tuple[Replays, ...]:
    """The replays of each variant, in the order of the records; empty where nothing was played."""
    by_variant: dict[str, list[Replay]] = {}
    for record in records:
        tally = record.tally if record.outcome is Outcome.MEASURED else None
        if tally is not None and tally.replay is not None:
            by_variant.setdefault(record.variant, []).append(tally.replay)
    return tuple(_of(variant, found) for variant, found in by_variant.items())


def _of(variant: str, found: Sequence[Replay]) -> Replays:
    return Replays(
        variant=variant,
        trials=len(found),
        recorded_s=found[0].recorded_s,
        took_s=median(one.took_s for one in found),
        statements=sum(one.statements for one in found),
        unsent=sum(one.unsent for one in found),
        late_by_server=sum(one.late_by_server for one in found),
        late_by_driver=sum(one.late_by_driver for one in found),
        server_lag_p99_ms=_median_ms([one.server_lag_us.p99 for one in found]),
        driver_lag_p99_ms=_median_ms([one.driver_lag_us.p99 for one in found]),
        failed=sum(failed.count for one in found for failed in one.failed),
        rows_compared=sum(one.rows_compared for one in found),
        rows_differ=sum(one.rows_differ for one in found),
    )


def _median_ms(lags_us: Sequence[float | None]) -> float | None:
    known = [lag_us / 1000 for lag_us in lags_us if lag_us is not None]
    return median(known) if known else None


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


def find(basis: Basis) -> tuple[Replays, ...]:
    """What trials played, summed for each variant."""
    return replays(basis.whole(HAS_REPLAY))


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
