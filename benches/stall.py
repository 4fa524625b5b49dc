"""Are latencies true when the server stalls? A real MariaDB is stopped (SIGSTOP) on a schedule.

    python benches/stall.py [--seconds S] [--rate R]

Three schedules: 200 ms in every 2 s, 137 ms in every 1.7 s, and one stall that the run's end falls into. When
each stall began and ended is noted, and what an open loop of constant rate must show follows from that alone
(`benches/stalls.py`). A closed loop, which stops asking while the server is stopped, is shown beside it:
there a stall costs one latency a client. A row that is further than 2 % from what it must be is marked, and
the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from driver import ROWS, mariadb
from stalls import Measured, Stall

from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError

SHARES_ABOVE = {"p50": None, "p90": None, "p95": 0.05, "p99": 0.01, "p99_9": 0.001, "max": 0.0}
"""Of the arrivals. No stall is long enough to show in the first two."""
WITHIN = 0.02
CLIENTS_OPEN, CLIENTS_CLOSED = 400, 8
"""In open loop more than the arrivals of any stall, so that none of them waits for a client."""


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
            opened, stalls = _stalled(server, schedule, {**job, "clients": CLIENTS_OPEN, "load": load})
            closed, _ = _stalled(server, schedule, {**job, "clients": CLIENTS_CLOSED})
            outside += _print(schedule, opened, closed, stalls)
    return 1 if outside else 0


def _stalled(
    server: Server, schedule: Schedule, job: dict[str, Any]
) -> tuple[dict[str, Any], Sequence[Stall]]:
    """The tally of a run under these stalls, and when they were."""
    stalls, over, last_second = list[Stall](), threading.Event(), threading.Event()
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
    stalls: list[Stall],
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
    stalls: list[Stall],
) -> None:
    while not last_second.wait(0.05) and not over.is_set():
        pass
    time.sleep(1.0 - schedule.period_s)
    stalls.append(_stall(process_ids, time.monotonic() + schedule.stall_s))


def _stall(process_ids: Sequence[int], until_s: float) -> Stall:
    """Stops the processes until a moment of the monotonic clock."""
    send(process_ids, "SIGSTOP")
    began_s = time.time()
    time.sleep(max(0.0, until_s - time.monotonic()))
    send(process_ids, "SIGCONT")
    return Stall(began_s, time.time())


def send(process_ids: Sequence[int], name: str) -> None:
    """A signal, by its name, to all processes of a server."""
    for process_id in process_ids:
        os.kill(process_id, signal.Signals[name])


def _print(
    schedule: Schedule, opened: dict[str, Any], closed: dict[str, Any], stalls: Sequence[Stall]
) -> int:
    """One table; how many of its rows are not what they must be."""
    measured_s = opened["started_unix_s"] + opened["warmup_s"]
    measured = Measured(measured_s, measured_s + opened["duration_s"])
    loop, lengths_ms = opened["open_loop"], [(stall.ended_s - stall.began_s) * 1e3 for stall in stalls]
    print(
        f"\n{schedule.name}: {len(stalls)} stalls of {min(lengths_ms):.1f} to {max(lengths_ms):.1f} ms\n"
        f"offered {loop['offered_per_s']:,.0f}/s, achieved {loop['achieved_per_s']:,.0f}/s, "
        f"kept: {loop['kept']}, unfinished at the end: {opened['unfinished']}"
    )
    row, outside = "{:>6}  {:>12}  {:>13}  {:>6} {:1}  {:>14}", 0
    print(row.format("", "expected, ms", "open loop, ms", "ratio", "", "closed loop, ms"))
    for name, share_above in SHARES_ABOVE.items():
        seen_ms, shut_ms = opened["latency_us"][name] / 1e3, closed["latency_us"][name] / 1e3
        expected_s = None if share_above is None else measured.expected_s(share_above, stalls)
        expected, ratio, mark = "", "", ""
        if expected_s is not None:
            expected, ratio = f"{expected_s * 1e3:.2f}", f"{seen_ms / expected_s / 1e3:.3f}"
            mark = "!" if abs(seen_ms / expected_s / 1e3 - 1) > WITHIN else ""
        outside += bool(mark)
        print(row.format(name, expected, f"{seen_ms:.2f}", ratio, mark, f"{shut_ms:.2f}"))
    return outside


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DynoError as error:
        sys.exit(f"error: {error.message}")
