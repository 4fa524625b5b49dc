"""Are latencies true when the server stalls? A real MariaDB is stopped (SIGSTOP) for 200 ms in every 2 s.

    python benches/stall.py [--seconds S] [--rate R]

Under a constant open-loop rate an arrival that falls into a stall waits for its rest. So the share of
latencies above x is the sum over the stalls of (length - x), by the time: p95 must be 100 ms, p99 180 ms and
the maximum 200 ms, were each stall of exactly 200 ms. They are timed, and the analytic values follow from
what they were. A closed loop, which stops asking while the server is stopped, is shown beside it: there a
stall costs one latency a client.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from driver import ROWS, mariadb

from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError

STALL_S, PERIOD_S = 0.2, 2.0
SHARES_ABOVE = {"p95": 0.05, "p99": 0.01, "p99_9": 0.001, "max": 0.0}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0)
    arguments = parser.parse_args()
    with mariadb() as server:
        job: dict[str, Any] = {
            "url": server.url,
            "workload": "point_select",
            "options": {"table_size": ROWS},
            "clients": 200,
            "warmup_s": PERIOD_S,
            "duration_s": arguments.seconds,
        }
        _driver.prepare(json.dumps(job))
        load = {"kind": "open", "rate_per_s": arguments.rate, "arrivals": "uniform"}
        with stalling(server) as stalls_ms:
            opened = json.loads(_driver.run(json.dumps({**job, "load": load})))
        with stalling(server):
            closed = json.loads(_driver.run(json.dumps({**job, "clients": 8})))
    _print(opened, closed, stalls_ms)


@contextmanager
def stalling(server: Server) -> Iterator[list[float]]:
    """Stops the server's process for a while in every period, on a schedule that does not drift.

    Gives the list of how long each stall really was, in milliseconds, which fills while they happen.
    """
    over, stalls_ms = threading.Event(), list[float]()
    thread = threading.Thread(target=_stall, args=(server.process_ids, over, stalls_ms))
    thread.start()
    try:
        yield stalls_ms
    finally:
        over.set()
        thread.join()


def _stall(process_ids: tuple[int, ...], over: threading.Event, stalls_ms: list[float]) -> None:
    began, turn = time.monotonic(), 1
    while not over.wait(max(0.0, began + turn * PERIOD_S - time.monotonic())):
        send(process_ids, "SIGSTOP")
        stopped = time.monotonic()
        time.sleep(max(0.0, began + turn * PERIOD_S + STALL_S - time.monotonic()))
        send(process_ids, "SIGCONT")
        stalls_ms.append((time.monotonic() - stopped) * 1e3)
        turn += 1


def send(process_ids: Sequence[int], name: str) -> None:
    """A signal, by its name, to all processes of a server."""
    for process_id in process_ids:
        os.kill(process_id, signal.Signals[name])


def analytic_ms(share_above: float, stalls_ms: list[float]) -> float:
    """The latency that this share of all arrivals exceeds, by bisection."""
    low, high = 0.0, max(stalls_ms)
    for _ in range(60):
        middle = (low + high) / 2
        above = sum(max(0.0, one - middle) for one in stalls_ms) / (len(stalls_ms) * PERIOD_S * 1e3)
        low, high = (middle, high) if above > share_above else (low, middle)
    return high


def _print(opened: dict[str, Any], closed: dict[str, Any], stalls_ms: list[float]) -> None:
    loop = opened["open_loop"]
    rates = f"offered {loop['offered_per_s']:,.0f}/s, achieved {loop['achieved_per_s']:,.0f}/s"
    lengths = f"{len(stalls_ms)} stalls of {min(stalls_ms):.1f} to {max(stalls_ms):.1f} ms"
    print(f"{rates}, kept: {loop['kept']}; {lengths}")
    row = "{:>6}  {:>12}  {:>13}  {:>10}  {:>14}"
    print(row.format("", "analytic, ms", "open loop, ms", "difference", "closed loop, ms"))
    for name in ("p50", "p90", *SHARES_ABOVE):
        measured, shut = opened["latency_us"][name] / 1e3, closed["latency_us"][name] / 1e3
        analytic = analytic_ms(SHARES_ABOVE[name], stalls_ms) if name in SHARES_ABOVE else None
        expected, apart = (f"{analytic:.2f}", f"{measured / analytic - 1:+.1%}") if analytic else ("", "")
        print(row.format(name, expected, f"{measured:.2f}", apart, f"{shut:.2f}"))


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
