"""What is said of a recording that was played: how long it took, what began late and by whom, what failed."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.driver.tally import Latency, Replay
from dbdyno.report.words.numbers import plural

SHOWN_MOST = 5


def sentences(replay: Replay) -> list[str]:
    """A sentence or fragment for each thing that there is to say, the most important one first."""
    return [
        _time(replay),
        *_late(replay),
        *_sessions(replay),
        *_failed(replay),
        *_rows(replay),
    ]


def _time(replay: Replay) -> str:
    recorded = f"the recording lasts {replay.recorded_s:,.1f} s"
    took = f"the replay took {replay.took_s:,.1f} s"
    if replay.speed is None or replay.planned_s is None:
        return f"{recorded}; {took} without its pauses"
    if replay.speed == 1.0:
        return f"{recorded}, {took}"
    return f"{recorded}; at {replay.speed:g} times its speed that is {replay.planned_s:,.1f} s, and {took}"


def _late(replay: Replay) -> Iterator[str]:
    if replay.speed is None:
        return
    late = replay.late_by_server + replay.late_by_driver
    if not late:
        yield f"none of {plural(replay.statements, 'statement')} began later than 1 ms after its time"
        return
    yield (
        f"{late:,} of {plural(replay.statements, 'statement')} began later than 1 ms after their time: "
        f"{replay.late_by_server:,} by the server, {replay.late_by_driver:,} by the driver"
    )
    yield f"lag by the server {_lag(replay.server_lag_us)}; by the driver {_lag(replay.driver_lag_us)}"


def _lag(lag_us: Latency) -> str:
    points = ((name, getattr(lag_us, name)) for name in ("p50", "p99", "max"))
    told = "  ".join(f"{name} {value / 1000:.3f}" for name, value in points if value is not None)
    return f"{told} ms, {lag_us.sum / 1e6:,.1f} s in all"


def _sessions(replay: Replay) -> Iterator[str]:
    for count, what in (
        (replay.sessions_refused, "could not be opened"),
        (replay.sessions_lost, "lost the connection"),
    ):
        if count:
            yield f"{plural(count, 'session')} {what}"
    if replay.unsent:
        yield f"{plural(replay.unsent, 'statement')} of the recording {_were(replay.unsent)} never sent"


def _failed(replay: Replay) -> Iterator[str]:
    count = sum(one.count for one in replay.failed)
    if count:
        yield f"{plural(count, 'statement')} failed that did not fail in the recording:"
    for one in replay.failed[:SHOWN_MOST]:
        yield f"  {one.count:,} x {one.error}: {_short(one.statement)}"


def _rows(replay: Replay) -> Iterator[str]:
    if not replay.rows_differ:
        return
    yield (
        f"{replay.rows_differ:,} of {replay.rows_compared:,} statements gave another number of rows than in "
        "the recording:"
    )
    for statement, count in list(replay.differing.items())[:SHOWN_MOST]:
        yield f"  {count:,} x {_short(statement)}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _short(statement: str, most: int = 80) -> str:
    return statement if len(statement) <= most else f"{statement[: most - 3]}..."
