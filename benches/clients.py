"""The driver's CPU per statement beside sysbench's and pgbench's: one PostgreSQL, one statement, one run.

    python -m benches.clients [--seconds S] [--rounds N] [--clients N ...] [--steps]

The statement is a prepared point select of sysbench's table. All three connect to the same Unix socket. In
every round each contender runs once, in turn, and the table shows medians and the range over the rounds. CPU
is user plus system of the client's whole run, connecting included. In one column ours looks at every answer
at once (`"gather": "off"`), and in the other it goes by its default.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benches.driver import (
    COST,
    RATE,
    ROWS,
    Outcome,
    built,
    ours,
    ours_until_killed,
    ratio,
    rounds,
    spread,
    stepped,
    timed,
)
from dbdyno.driver import _driver
from dbdyno.engines import registry
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.study.nouns import Reference

OTHERS = 20
"""Connections that are no clients: the server's own, and those that prepare."""
SCRIPT = f"\\set id random(1, {ROWS})\nSELECT c FROM sbtest1 WHERE id = :id;\n"


def main() -> None:
    arguments = _arguments()
    for tool in ("sysbench", "pgbench"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed: apt-get install sysbench postgresql-contrib")
    with postgresql(arguments.version, max(arguments.clients)) as server:
        job: dict[str, Any] = {"url": server.url, "workload": "point_select", "options": {"table_size": ROWS}}
        _driver.prepare(json.dumps(job))
        if arguments.steps:
            steps(job, arguments)
            return
        print(
            f"PostgreSQL {server.version}, {ROWS:,} rows, {os.cpu_count()} CPUs shared by server and client\n"
            f"client CPU per prepared point select, us; medians of {arguments.rounds} (range), "
            f"{arguments.seconds:g} s each"
        )
        row = "{:>8}" + 4 * "  {:>19}" + 3 * "  {:>13}"
        print(row.format(
            "clients", "sysbench", "pgbench", "ours, not gathering", "ours",
            "ours/sysbench", "ours/pgbench", "q/s: /pgbench",
        ))  # fmt: skip
        for clients in arguments.clients:
            found = rounds(arguments, {
                "sysbench": partial(sysbench, server, clients, arguments.seconds),
                "pgbench": partial(pgbench, server, clients, arguments.seconds),
                "at once": partial(ours, {**job, "gather": "off"}, clients, arguments.seconds),
                "ours": partial(ours, job, clients, arguments.seconds),
            })  # fmt: skip
            print(row.format(
                clients, *(spread(runs) for runs in found.values()),
                ratio(COST, found["ours"], found["sysbench"]), ratio(COST, found["ours"], found["pgbench"]),
                ratio(RATE, found["ours"], found["pgbench"]),
            ), flush=True)  # fmt: skip


def steps(job: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Instructions of ours per point select."""
    print(f"instructions outside of the kernel per point select; medians of {arguments.rounds} (range)")
    for clients in arguments.clients:
        counts = stepped(built("count_steps"), ours_until_killed(job, clients), arguments)
        print(
            f"{clients:>8}  {statistics.median(counts):.0f} ({min(counts):.0f}-{max(counts):.0f})", flush=True
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=3, help="length of one run (default 3)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each contender (default 7)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 32], help="1 and 32 unless given")
    parser.add_argument("--version", default="15", help="PostgreSQL's version (default 15)")
    parser.add_argument("--steps", action="store_true", help="count instructions instead")
    return parser.parse_args()


@contextmanager
def postgresql(version: str, clients: int) -> Iterator[Server]:
    """A fresh PostgreSQL on a private socket that so many clients can use."""
    engine = registry.engine("postgresql")
    installation = engine.obtaining.locate(Reference("postgresql", version))
    with tempfile.TemporaryDirectory(prefix="dyno-bench-") as folder:
        data, runtime = Path(folder) / "data", Path(folder) / "run"
        runtime.mkdir(mode=0o700)
        engine.life.initialise(installation, data, {})
        settings: dict[str, Level] = {"shared_buffers": "512MB", "max_connections": clients + OTHERS}
        server = engine.life.start(installation, data, runtime, settings, Launch())
        try:
            yield server
        finally:
            server.stop()


def place(server: Server) -> tuple[str, str, str, str]:
    """User, database, folder of the socket, and port."""
    url = urlsplit(server.url)
    given = {key: values[0] for key, values in parse_qs(url.query).items()}
    socket = Path(given["socket"])
    folder, port = (socket.parent, socket.name.rpartition(".")[2]) if socket.suffix else (socket, "5432")
    return url.username or "", url.path.lstrip("/"), str(folder), port


def sysbench(server: Server, clients: int, seconds: float) -> Outcome:
    user, database, folder, port = place(server)
    command = [
        "sysbench", "oltp_point_select", "--db-driver=pgsql", f"--pgsql-host={folder}",
        f"--pgsql-port={port}", f"--pgsql-user={user}", f"--pgsql-db={database}", f"--table-size={ROWS}",
        "--rand-type=uniform", f"--threads={clients}", f"--time={seconds:g}", "run",
    ]  # fmt: skip
    said, spent_s = timed(command)
    done = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per", said)
    if done is None:
        raise DynoError(f"sysbench failed: {said[-400:]}")
    return Outcome(float(done[2]), spent_s / int(done[1]) * 1e6)


def pgbench(server: Server, clients: int, seconds: float) -> Outcome:
    user, database, folder, port = place(server)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        said, spent_s = timed([
            "pgbench", "--no-vacuum", "--protocol=prepared", f"--host={folder}", f"--port={port}",
            f"--username={user}", f"--client={clients}", "--jobs=1", f"--time={seconds:g}",
            f"--file={script.name}", database,
        ])  # fmt: skip
    done = re.search(r"transactions actually processed: (\d+)", said)
    rate = re.search(r"tps = ([\d.]+)", said)
    if done is None or rate is None:
        raise DynoError(f"pgbench failed: {said[-400:]}")
    return Outcome(float(rate[1]), spent_s / int(done[1]) * 1e6)


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
