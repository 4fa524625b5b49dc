"""A tally in words, as `dyno load` prints it.

What is said of a recording that was played: how long it took, what began late and by whom, what failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.driver.tally import Latency, OpenLoop, Recall, Replay, Statement, Tally
from dbdyno.records.load_words import FAILED_SHARE, driver_lagged, waited_for_cpu
from dbdyno.records.metrics import FAILED_SHARE_MAX, number_text
from dbdyno.report.words.numbers import plural
from dbdyno.study.nouns import TPCC

_PERCENTILES = ("p50", "p90", "p95", "p99", "p99_9", "max")


def tally_text(tally: Tally) -> str:
    """The tally in a few lines: how fast, how long an operation took, what it cost, what went wrong."""
    lines = [
        f"{tally.workload} on {tally.protocol} {tally.server_version}, "
        f"{plural(tally.clients, 'client')}, {tally.backend}, "
        f"{plural(tally.threads, 'driver thread')}",
        *_failing(tally),
        _throughput(tally),
        *([_open_loop(tally.open_loop)] if tally.open_loop else ()),
        *_latency(tally),
        *_cost(tally),
        *_gathering(tally),
        f"errors      {_errors(tally)}",
        *_examples(tally),
        *_lost(tally),
        *_unfinished(tally),
        *_recall(tally.recall),
        *_replay(tally),
        *_by_transaction(tally),
        *_by_statement(tally.by_statement),
        *_phases(tally),
    ]
    if tally.saturated:
        lines.append(f"warning: the driver was the limit: {tally.saturated}")
    if waited := waited_for_cpu(tally):
        lines.append(f"warning: {waited}: part of each latency is this wait")
    return "\n".join(lines)


def _throughput(tally: Tally) -> str:
    if not tally.duration_s:
        return "throughput  not measured: the run ended in the warm-up"
    cut = " (cut short)" if tally.interrupted else ""
    return (
        f"throughput  {number_text(tally.throughput_per_s)} per s "
        f"({tally.operations:,} transactions ended in {tally.duration_s:.1f} s{cut})"
    )


def _lost(tally: Tally) -> Iterator[str]:
    lost = tally.clients_lost
    if lost:
        yield f"lost        {lost} of {plural(tally.clients, 'client')}, with their connection"


def _unfinished(tally: Tally) -> Iterator[str]:
    unfinished = tally.unfinished
    # Each client has one transaction under way when the time is over: that is no finding unless nothing else
    # came of the run.
    if unfinished > tally.clients or (unfinished and not tally.operations):
        yield (
            f"unfinished  {plural(unfinished, 'transaction')} not done at the end; "
            "the latencies count at least the time that they had waited"
        )


def _latency(tally: Tally) -> Iterator[str]:
    """How long transactions took, those included that only waited, and those that failed apart."""
    failed_us = tally.failed_latency_us
    if tally.latency_us.count:
        of_some = "  (of those that succeeded)" if tally.failed_share > FAILED_SHARE_MAX else ""
        yield f"latency ms  {times_ms(tally.latency_us, 'mean', *_PERCENTILES)}{of_some}"
    if failed_us is not None and failed_us.count:
        times = times_ms(failed_us, "mean", *_PERCENTILES)
        yield f"failed ms   {times}  ({plural(failed_us.count, 'transaction')})"


def times_ms(latency_us: Latency, *points: str) -> str:
    """Latencies at some points, in milliseconds."""
    return "  ".join(f"{point.replace('_', '.')} {getattr(latency_us, point) / 1000:.3f}" for point in points)


def _cost(tally: Tally) -> Iterator[str]:
    """What a transaction took of the driver: there is none where none succeeded."""
    cpu = tally.driver_cpu_us_per_op
    if cpu.user is None or cpu.system is None:
        return
    yield (
        f"driver CPU  {cpu.user + cpu.system:.2f} us per transaction "
        f"(user {cpu.user:.2f}, system {cpu.system:.2f})"
    )


def _gathering(tally: Tally) -> Iterator[str]:
    """Whether the driver let the server go first."""
    if tally.gather == "off":
        yield "gathering   off: each answer was looked at as soon as it could be"
    elif tally.gather is not None:
        policy = " under SCHED_BATCH" if tally.sched_batch else ""
        yield f"gathering   {tally.gather.replace('_', ' ')}: {tally.gathered_share:.0%} of the time{policy}"


def _recall(recall: Recall | None) -> Iterator[str]:
    """How good approximate answers were, where they were scored."""
    if recall is not None:
        yield (
            f"recall      mean {recall.mean:.4f}  p5 {recall.p5:.3f}  p1 {recall.p1:.3f}  "
            f"min {recall.min:.3f} ({recall.count:,} answers scored)"
        )


def _replay(tally: Tally) -> Iterator[str]:
    """What became of a recording that was played."""
    if tally.replay is None:
        return
    for place, line in enumerate(sentences(tally.replay)):
        yield f"{'' if place else 'replay':<11} {line}"
    if lagged := driver_lagged(tally.replay):
        yield f"warning: {lagged}: part of each latency is this wait"


NAME_WIDTH = 21


def _by_transaction(tally: Tally) -> Iterator[str]:
    """Where there are several kinds: how many of each, how long they took, and what rolled back."""
    kinds = tally.by_transaction
    if len(kinds) < 2:
        return
    width = max(NAME_WIDTH, *map(len, kinds))
    for name, kind in kinds.items():
        if not kind.latency_us.count:
            yield f"{name:<{width}} {kind.operations:>10,}"
            continue
        times = times_ms(kind.latency_us, "mean", "p50", "p99", "max")
        yield f"{name:<{width}} {kind.operations:>10,}  ms: {times}"
    if tally.workload == TPCC and tally.duration_s:
        per_minute = kinds["new_order"].throughput_per_s * 60
        yield f"new orders  {number_text(per_minute)} per minute; {tally.rollbacks:,} more rolled back"


def _by_statement(statements: Mapping[str, Statement]) -> Iterator[str]:
    """Two lines for each kind of statement: its share of the time in all statements and its times, then its
    text."""
    total_us = sum(statement.latency_us.sum for statement in statements.values())
    for text, statement in statements.items():
        latency_us = statement.latency_us
        times = times_ms(latency_us, "mean", "p50", "p99", "max")
        failed = f"  {plural(statement.errors, 'error')}" if statement.errors else ""
        share = latency_us.sum / total_us
        yield f"statement {share:>4.0%} of the time {latency_us.count:>10,}  ms: {times}{failed}"
        yield f"            {text}"


def _phases(tally: Tally) -> Iterator[str]:
    for phase in tally.phases:
        rate = phase.operations_per_s
        speed = "not finished" if rate is None else f"{number_text(rate)} operations per s"
        yield f"phase {phase.name:<13} {phase.operations:>12,} operations  {speed}"


def _errors(tally: Tally) -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in tally.errors.items())
    return f"{kinds} ({tally.retries} tried again)" if kinds else "none"


def _failing(tally: Tally) -> Iterator[str]:
    """A warning where errors are too many to be passed over."""
    if (share := tally.failed_share) > FAILED_SHARE:
        yield f"warning: {share:.0%} of the transactions failed: see the errors below"


def _examples(tally: Tally) -> Iterator[str]:
    """What the first error of each kind said."""
    for kind, example in tally.error_examples.items():
        times = plural(tally.errors.get(kind, 0), "time")
        yield f"            {kind}, {times}: {' '.join(example.split())}"


def _open_loop(loop: OpenLoop) -> str:
    kept = "kept" if loop.kept else "NOT kept"
    offered, achieved = f"{loop.offered_per_s:.1f}", f"{loop.achieved_per_s:.1f}"
    more = float(achieved) > float(offered)
    why = (
        "\n            more than offered: starts are drawn by chance, or were due in the warm-up"
        if more
        else ""
    )
    return (
        f"open loop   offered {offered} per s, achieved {achieved}, "
        f"{kept}; longest backlog {loop.backlog_max}{why}"
    )


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
