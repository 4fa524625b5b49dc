"""Scripts of sysbench under Dyno's driver beside sysbench itself, against one MariaDB in one run.

    python -m benches.lua [--seconds S] [--rounds N] [--clients C]

Client CPU per query, user plus system of a whole run, connecting included: of sysbench, of ours with the same
script, and of ours with its own workload for the same statements. In every round each contender runs once, in
turn; the table shows medians and the range over the rounds, and ratios are medians of the rounds' own ratios.
Then the memory of one process that holds a thousand clients with a script each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benches.driver import COST, RATE, ROWS, held, mariadb, ours, ratio, rounds, spread, sysbench
from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError

SCRIPTS = Path("/usr/share/sysbench")
COMPARED = {"oltp_point_select": ("point_select", 1), "oltp_read_write": ("read_write", 20)}
"""The scripts, each with the workload of the same statements and how many of them an event has."""
MANY = 1_000


def main() -> None:
    arguments = _arguments()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is not installed: apt-get install sysbench")
    with mariadb() as server:
        print(f"MariaDB {server.version}, {ROWS:,} rows, {os.cpu_count()} cores shared by server and client")
        _driver.prepare(json.dumps(_own_job(server, "read_write")))
        _print_costs(server, arguments)
        held(_script_job(server, "oltp_point_select"), arguments, MANY)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=3, help="length of one run (default 3)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each contender (default 7)")
    parser.add_argument("--clients", type=int, default=32, help="connections (default 32)")
    return parser.parse_args()


def _own_job(server: Server, workload: str) -> dict[str, Any]:
    return {"url": server.url, "workload": workload, "options": {"table_size": ROWS}}


def _script_job(server: Server, script: str) -> dict[str, Any]:
    variables = f"table_size={ROWS},rand_type=uniform"
    options = {"file": str(SCRIPTS / f"{script}.lua"), "variables": variables}
    return {"url": server.url, "workload": "lua", "options": options}


def _print_costs(server: Server, arguments: argparse.Namespace) -> None:
    clients, seconds = arguments.clients, arguments.seconds
    print(
        f"\nclient CPU per event, us, at {clients} connections; medians of {arguments.rounds} (range), "
        f"{seconds:g} s each"
    )
    row = "{:>18}" + 3 * "  {:>22}" + "  {:>13}  {:>15}"
    print(row.format(
        "script", "sysbench", "ours with the script", "ours without", "ours/sysbench", "rate: ours/sysb.",
    ))  # fmt: skip
    for script, (workload, statements) in COMPARED.items():
        found = rounds(arguments, {
            "sysbench": partial(sysbench, server, script, clients, seconds),
            "script": partial(ours, _script_job(server, script), clients, seconds),
            "own": partial(ours, _own_job(server, workload), clients, seconds),
        })  # fmt: skip
        print(row.format(
            f"{script} ({statements})", *(spread(runs) for runs in found.values()),
            ratio(COST, found["script"], found["sysbench"]), ratio(RATE, found["script"], found["sysbench"]),
        ), flush=True)  # fmt: skip


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
