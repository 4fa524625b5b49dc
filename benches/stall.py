"""Are latencies true when the server stalls? A real MariaDB is stopped (SIGSTOP) for 200 ms in every 2 s.

    python benches/stall.py [--seconds S] [--rate R]

Under a constant open-loop rate a share of 0.1 of all arrivals falls into a stall and waits for its rest,
which is uniform between 0 and 200 ms. So the share of latencies above x is 0.1 * (1 - x / 200 ms): p95 must
be 100 ms, p99 180 ms and the maximum 200 ms, whatever the server does otherwise. A closed loop, which stops
asking while the server is stopped, is shown beside it: there a stall costs one latency a client.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from driver import ROWS, mariadb

from dbdyno import _driver
from dbdyno.engines.base import Server
from dbdyno.errors import DynoError

STALL_S, PERIOD_S = 0.2, 2.0
ANALYTIC_MS = {"p95": 100.0, "p99": 180.0, "p99_9": 198.0, "max": 200.0}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=2000.0)
    arguments = parser.parse_args()
    with mariadb() as server:
        job: dict[str, Any] = {
            "url": server.url,
            "workload": "point_select",
            "options": {"table_size": ROWS},
            "clients": 500,
            "warmup_s": PERIOD_S,
            "duration_s": arguments.seconds,
        }
        _driver.prepare(json.dumps(job))
        load = {"kind": "open", "rate_per_s": arguments.rate, "arrivals": "uniform"}
        with stalling(server):
            opened = json.loads(_driver.run(json.dumps({**job, "load": load})))
        with stalling(server):
            closed = json.loads(_driver.run(json.dumps({**job, "clients": 8})))
    _print(opened, closed)


@contextmanager
def stalling(server: Server) -> Iterator[None]:
    """Stops the server's process for a while in every period, on a schedule that does not drift."""
    over = threading.Event()
    thread = threading.Thread(target=_stall, args=(server.process_ids, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _stall(process_ids: tuple[int, ...], over: threading.Event) -> None:
    began, turn = time.monotonic(), 1
    while not over.wait(max(0.0, began + turn * PERIOD_S - time.monotonic())):
        _signal(process_ids, signal.SIGSTOP)
        time.sleep(max(0.0, began + turn * PERIOD_S + STALL_S - time.monotonic()))
        _signal(process_ids, signal.SIGCONT)
        turn += 1


def _signal(process_ids: tuple[int, ...], number: signal.Signals) -> None:
    for process_id in process_ids:
        os.kill(process_id, number)


def _print(opened: dict[str, Any], closed: dict[str, Any]) -> None:
    loop = opened["open_loop"]
    rates = f"offered {loop['offered_per_s']:,.0f}/s, achieved {loop['achieved_per_s']:,.0f}/s"
    print(f"{rates}, kept: {loop['kept']}")
    row = "{:>6}  {:>12}  {:>13}  {:>10}  {:>14}"
    print(row.format("", "analytic, ms", "open loop, ms", "difference", "closed loop, ms"))
    for name in ("p50", "p90", *ANALYTIC_MS):
        measured, shut = opened["latency_us"][name] / 1e3, closed["latency_us"][name] / 1e3
        analytic = ANALYTIC_MS.get(name)
        apart = f"{measured / analytic - 1:+.1%}" if analytic else ""
        print(row.format(name, analytic or "", f"{measured:.2f}", apart, f"{shut:.2f}"))


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
