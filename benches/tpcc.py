"""TPC-C beside sysbench, which is given the same transactions as a script (tpcc.lua): one MariaDB, one run.

    python -m benches.tpcc [--seconds S] [--rounds N] [--clients C]

New orders per minute are counted by the server: the rise of D_NEXT_O_ID over the run's duration. Client CPU
is user plus system per transaction: of the whole process for sysbench, of its threads for ours. In every
round each contender runs once; the table shows medians and the range over the rounds. The consistency
conditions must hold after the runs of both.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benches.driver import mariadb, target, timed
from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError

WAREHOUSES = 2


@dataclass(frozen=True)
class Outcome:
    """One run of one contender."""

    new_orders_per_minute: float
    cpu_us_per_transaction: float


def main() -> None:
    arguments = _arguments()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is not installed: apt-get install sysbench")
    with mariadb() as server:
        job: dict[str, Any] = {
            "url": server.url,
            "workload": "tpcc",
            "options": {"warehouses": WAREHOUSES},
            "clients": arguments.clients,
            "warmup_s": 0.0,
            "duration_s": arguments.seconds,
        }
        _driver.prepare(json.dumps(job))
        print(
            f"MariaDB {server.version}, {WAREHOUSES} warehouses, {arguments.clients} clients; "
            f"medians of {arguments.rounds} (range), {arguments.seconds:g} s each"
        )
        contenders = {"sysbench": partial(sysbench, server, arguments), "ours": partial(ours, server, job)}
        found: dict[str, list[Outcome]] = {name: [] for name in contenders}
        for _ in range(arguments.rounds):
            for name, run in contenders.items():
                found[name].append(run())
        _print(found)
        _require_consistency(job)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=5, help="length of one run (default 5)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each contender (default 5)")
    parser.add_argument("--clients", type=int, default=8, help="connections (default 8)")
    return parser.parse_args()


def ours(server: Server, job: dict[str, Any]) -> Outcome:
    """One run of Dyno's driver."""
    before = _orders(server)
    tally = json.loads(_driver.run(json.dumps(job)))
    cost = tally["driver_cpu_us_per_op"]
    per_minute = (_orders(server) - before) * 60 / tally["duration_s"]
    return Outcome(per_minute, cost["user"] + cost["system"])


def sysbench(server: Server, arguments: argparse.Namespace) -> Outcome:
    """One run of sysbench with our script."""
    user, database, socket = target(server)
    before = _orders(server)
    script = Path(__file__).with_name("tpcc.lua")
    said, spent_s = timed([
        "sysbench", str(script), f"--mysql-socket={socket}", f"--mysql-user={user}", f"--mysql-db={database}",
        f"--warehouses={WAREHOUSES}", "--rand-type=uniform", "--db-ps-mode=disable",
        f"--threads={arguments.clients}", f"--time={arguments.seconds:g}", "run",
    ])  # fmt: skip
    transactions = re.search(r"transactions:\s+(\d+)", said)
    if transactions is None:
        raise DynoError(f"sysbench failed: {said[-400:]}")
    per_minute = (_orders(server) - before) * 60 / arguments.seconds
    return Outcome(per_minute, spent_s / int(transactions[1]) * 1e6)


def _orders(server: Server) -> int:
    answer = json.loads(_driver.query(server.url, "SELECT SUM(d_next_o_id) FROM district"))
    return int(answer["rows"][0][0])


def _print(found: dict[str, list[Outcome]]) -> None:
    print(f"{'':>12}  {'new orders per minute':>30}  {'client CPU per transaction, us':>32}")
    for name, runs in found.items():
        orders = _spread(runs, lambda run: run.new_orders_per_minute, 0)
        print(f"{name:>12}  {orders:>30}  {_spread(runs, lambda run: run.cpu_us_per_transaction, 1):>32}")
    rate, cost = (
        statistics.median(map(of, found["ours"])) / statistics.median(map(of, found["sysbench"]))
        for of in (lambda run: run.new_orders_per_minute, lambda run: run.cpu_us_per_transaction)
    )
    print(f"{'ours/sysbench':>13} {rate:>30.2f}  {cost:>32.2f}")


def _spread(runs: list[Outcome], of: Callable[[Outcome], float], digits: int) -> str:
    values = [of(run) for run in runs]
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}-{max(values):,.{digits}f})"


def _require_consistency(job: dict[str, Any]) -> None:
    checks = json.loads(_driver.check(json.dumps(job)))
    broken = [f"{check['name']}: {check['detail']}" for check in checks if not check["holds"]]
    if broken:
        raise DynoError("after the runs " + "; ".join(broken))
    print(f"all {len(checks)} invariants hold after the runs of both")


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
