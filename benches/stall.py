"""Are latencies true when the server stalls? A real MariaDB is stopped (SIGSTOP) on a schedule.

    python -m benches.stall [--seconds S] [--rate R]

Three schedules: 200 ms in every 2 s, 137 ms in every 1.7 s, and one stall that the run's end falls into. When
each stall began and ended is noted, and what an open loop of constant rate must show follows from that
(`benches/stalls.py`), but for two things. A signal takes effect between the moments before and after its
call. And the requests that came during a stall are served in an order that nobody knows. So each row has two
bounds: the lower takes the shorter stall and no time for that queue; the upper takes the longer one, and lets
every request wait for the whole queue, at the speed that a closed loop of as many clients had just before.

A closed loop, which stops asking while the server is stopped, is shown beside it: there a stall costs one
latency a client. A row that is more than 2 % outside of its bounds is marked, and the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benches.driver import ROWS, mariadb
from benches.stalls import Measured, Stall, require_capacity
from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError

SHARES_ABOVE = {"p50": None, "p90": None, "p95": 0.05, "p99": 0.01, "p99_9": 0.001, "max": 0.0}
"""Of the arrivals. No stall is long enough to show in the first two."""
WITHIN = 0.02
CLIENTS_OPEN, CLIENTS_CLOSED = 400, 8
"""In open loop more than the arrivals of any stall, so that none of them waits for a client."""
CAPACITY_S = 3.0
"""How long the server's speed with a stall's queue is measured."""


AtLeastAtMost = tuple[Stall, Stall]
"""For how long the server surely stood still, and for how long it may have."""


@dataclass(frozen=True)
class Schedule:
    """When the server is stopped: for `stall_s` in every `period_s`, or once before the end of the run."""

    name: str
    stall_s: float
    period_s: float
    only_at_the_end: bool = False


SCHEDULES = (
    Schedule("200 ms in every 2 s", 0.2, 2.0),
    Schedule("137 ms in every 1.7 s", 0.137, 1.7),
    Schedule("200 ms, of which half is beyond the end", 0.2, 0.1, only_at_the_end=True),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    arguments = parser.parse_args()
    outside = 0
    with mariadb() as server:
        job: dict[str, Any] = {
            "url": server.url,
            "workload": "point_select",
            "options": {"table_size": ROWS},
            "warmup_s": 2.0,
        }
        _driver.prepare(json.dumps(job))
        for schedule in SCHEDULES:
            seconds = min(arguments.seconds, 10.0) if schedule.only_at_the_end else arguments.seconds
            job["duration_s"] = seconds
            load = {"kind": "open", "rate_per_s": arguments.rate, "arrivals": "uniform"}
            served_per_s = _served_per_s(job, math.ceil(arguments.rate * schedule.stall_s))
            require_capacity(served_per_s, arguments.rate)
            opened, stalls = _stalled(server, schedule, {**job, "clients": CLIENTS_OPEN, "load": load})
            closed, _ = _stalled(server, schedule, {**job, "clients": CLIENTS_CLOSED})
            at_least = [least for least, _ in stalls]
            at_most = [most.until_drained(arguments.rate, served_per_s) for _, most in stalls]
            print(_heading(schedule, opened, at_least, served_per_s))
            outside += _print(opened, closed, at_least, at_most)
    return 1 if outside else 0


def _served_per_s(job: dict[str, Any], clients: int) -> float:
    """How many requests the server answers while this many wait for it, without a stall."""
    told = json.loads(_driver.run(json.dumps({**job, "duration_s": CAPACITY_S, "clients": clients})))
    return float(told["operations"] / told["duration_s"])


def _stalled(
    server: Server, schedule: Schedule, job: dict[str, Any]
) -> tuple[dict[str, Any], Sequence[AtLeastAtMost]]:
    """The tally of a run under these stalls, and when they were."""
    stalls, over, last_second = list[AtLeastAtMost](), threading.Event(), threading.Event()
    last = int(job["duration_s"]) - 2

    def on_second(second: str) -> None:
        # A second is told when it is over.
        if json.loads(second)["second"] >= last:
            last_second.set()

    stop = _once_at_the_end if schedule.only_at_the_end else _in_every_period
    with _in_a_thread(lambda: stop(server.process_ids, schedule, over, last_second, stalls), over):
        return json.loads(_driver.run(json.dumps(job), on_second)), stalls


@contextmanager
def _in_a_thread(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _in_every_period(
    process_ids: Sequence[int],
    schedule: Schedule,
    over: threading.Event,
    _last_second: threading.Event,
    stalls: list[AtLeastAtMost],
) -> None:
    """On a schedule that does not drift."""
    began, turn = time.monotonic(), 1
    while not over.wait(max(0.0, began + turn * schedule.period_s - time.monotonic())):
        stalls.append(_stall(process_ids, began + turn * schedule.period_s + schedule.stall_s))
        turn += 1


def _once_at_the_end(
    process_ids: Sequence[int],
    schedule: Schedule,
    over: threading.Event,
    last_second: threading.Event,
    stalls: list[AtLeastAtMost],
) -> None:
    while not last_second.wait(0.05) and not over.is_set():
        pass
    time.sleep(1.0 - schedule.period_s)
    stalls.append(_stall(process_ids, time.monotonic() + schedule.stall_s))


def _stall(process_ids: Sequence[int], until_s: float) -> AtLeastAtMost:
    """Stops the processes until a moment of the monotonic clock. The bench itself may wait for a CPU between
    a signal and its look at the clock."""
    before_stop_s = time.time()
    send(process_ids, "SIGSTOP")
    stopped_s = time.time()
    time.sleep(max(0.0, until_s - time.monotonic()))
    before_going_on_s = time.time()
    send(process_ids, "SIGCONT")
    return Stall(stopped_s, before_going_on_s), Stall(before_stop_s, time.time())


def send(process_ids: Sequence[int], name: str) -> None:
    """A signal, by its name, to all processes of a server."""
    for process_id in process_ids:
        os.kill(process_id, signal.Signals[name])


def _heading(schedule: Schedule, opened: dict[str, Any], stalls: Sequence[Stall], served_per_s: float) -> str:
    loop, lengths_ms = opened["open_loop"], [(stall.ended_s - stall.began_s) * 1e3 for stall in stalls]
    return (
        f"\n{schedule.name}: {len(stalls)} stalls of {min(lengths_ms):.1f} to {max(lengths_ms):.1f} ms\n"
        f"offered {loop['offered_per_s']:,.0f}/s, achieved {loop['achieved_per_s']:,.0f}/s, "
        f"kept: {loop['kept']}, unfinished at the end: {opened['unfinished']}; "
        f"served from a queue: {served_per_s:,.0f}/s"
    )


def _print(
    opened: dict[str, Any], closed: dict[str, Any], at_least: Sequence[Stall], at_most: Sequence[Stall]
) -> int:
    """One table; how many of its rows are outside of their bounds."""
    measured_s = opened["started_unix_s"] + opened["warmup_s"]
    measured = Measured(measured_s, measured_s + opened["duration_s"])
    row, outside = "{:>6}  {:>16}  {:>13}  {:>7} {:1}  {:>14}", 0
    print(row.format("", "expected, ms", "open loop, ms", "outside", "", "closed loop, ms"))
    for name, share_above in SHARES_ABOVE.items():
        seen_s, shut_ms = opened["latency_us"][name] / 1e6, closed["latency_us"][name] / 1e3
        low_s = None if share_above is None else measured.expected_s(share_above, at_least)
        high_s = None if share_above is None else measured.expected_s(share_above, at_most)
        expected, beyond, mark = "", "", ""
        if low_s is not None and high_s is not None:
            share = max(1 - seen_s / low_s, seen_s / high_s - 1, 0.0)
            expected, beyond = f"{low_s * 1e3:.2f} - {high_s * 1e3:.2f}", f"{share:.1%}"
            mark = "!" if share > WITHIN else ""
        outside += bool(mark)
        print(row.format(name, expected, f"{seen_s * 1e3:.2f}", beyond, mark, f"{shut_ms:.2f}"))
    return outside


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DynoError as error:
        sys.exit("\n".join(filter(None, [f"error: {error.message}", error.hint])))
