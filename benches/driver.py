"""The driver's cost beside sysbench's and a bare loop's, against one MariaDB in one run.

    python -m benches.driver [points] [steps] [mixed] [statements] [connections] [--seconds S] [--rounds N]

points: client CPU per prepared point select and queries per second, at 1, 32, 512 and 4,096 connections.
steps: instructions outside of the kernel for the same, of our thread, of the bare io_uring loop, and of that
loop with what a measurement cannot do without (`checked`: see bare_loop.c). They are counted by single steps
in windows of a few operations. They need no quiet machine; a busy one takes minutes.
mixed: read_write at 8 and 64 clients. statements: the same with each of its statements timed, and without.
connections: memory of one process that holds 10,000 of them, and of one that holds as many as the limit of
open files permits, up to 110,000, of which 10,000 are asked something every second. The latter are connected
to a server that costs next to nothing (bare_server.c), because a database would take gigabytes to hold them.
The bare loops look at each answer at once, as ours does when it does not gather (`"gather": "off"`).
In every round each contender runs once, in turn; the table shows medians and the range over the rounds, and
ratios are medians of the rounds' own ratios, for the speed of the machine may change from round to round.
All CPU is user plus system of a whole run, connecting included; no contender warms up first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError, EngineMissing
from dbdyno.host.launch import Launch
from dbdyno.study.nouns import Reference

ROWS = 200_000
CONNECTIONS = (1, 32, 512, 4096)
STEPPED = 96
"""Operations of a window in which instructions are counted."""
SETTINGS: dict[str, bool | int | float | str] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_log_file_size": "512M",
    "innodb_flush_log_at_trx_commit": 0,
    "innodb_doublewrite": False,
    "max_connections": 12_000,
    "back_log": 2_000,
    "thread_stack": "192K",
}
"""The server must be as quick as it can, so that the client's share of the two cores shows."""


RETRIED = ("1020 ", "1205 ", "1213 ")
"""Conflicts between clients, which both contenders answer by trying the transaction again."""


@dataclass(frozen=True)
class Outcome:
    """One run of one contender."""

    operations_per_s: float
    cpu_us_per_op: float


COST, RATE = attrgetter("cpu_us_per_op"), attrgetter("operations_per_s")


def main() -> None:
    arguments = _arguments()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is not installed: apt-get install sysbench")
    with mariadb() as server:
        job: dict[str, Any] = {"url": server.url, "workload": "point_select", "options": {"table_size": ROWS}}
        print(f"MariaDB {server.version}, {ROWS:,} rows, {os.cpu_count()} cores shared by server and client")
        _driver.prepare(json.dumps(job))
        if "points" in arguments.parts:
            points(server, job, arguments)
        if "steps" in arguments.parts:
            steps(server, job, arguments)
        if "mixed" in arguments.parts:
            mixed(server, job, arguments)
        if "statements" in arguments.parts:
            statements(job, arguments)
        if "connections" in arguments.parts:
            connections(server, job, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("points", "steps", "mixed", "statements", "connections")
    parser.add_argument("parts", nargs="*", default=list(parts), metavar="PART", help=", ".join(parts))
    parser.add_argument("--seconds", type=int, default=3, help="length of one run (default 3)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each contender (default 7)")
    return parser.parse_args()


@contextmanager
def mariadb() -> Iterator[Server]:
    """A fresh MariaDB 11.8 on a private socket."""
    engine = registry.engine("mariadb")
    try:
        installation = engine.obtaining.locate(Reference("mariadb", "11.8"))
    except EngineMissing:
        installation = engine.obtaining.fetch("11.8", "", lambda line: print(line, file=sys.stderr))
    _raise_open_files()
    with tempfile.TemporaryDirectory(prefix="dyno-bench-") as folder:
        data, runtime = Path(folder) / "data", Path(folder) / "run"
        runtime.mkdir(mode=0o700)
        engine.life.initialise(installation, data, {})
        server = engine.life.start(installation, data, runtime, SETTINGS, Launch())
        try:
            yield server
        finally:
            server.stop()


def _raise_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def points(server: Server, job: dict[str, Any], arguments: argparse.Namespace) -> None:
    """The table of client CPU per point select."""
    loop = built("bare_loop")
    print(
        f"\nclient CPU per point select, us; medians of {arguments.rounds} (range), "
        f"{arguments.seconds:g} s each"
    )
    row = "{:>11}" + 5 * "  {:>19}" + "  {:>13}  {:>12}  {:>14}"
    print(row.format(
        "connections", "sysbench", "bare epoll", "bare io_uring", "ours, not gathering", "ours",
        "ours/sysbench", "not g./bare", "q/s: ours/sysb.",
    ))  # fmt: skip
    for clients in CONNECTIONS:
        found = rounds(arguments, {
            "sysbench": partial(sysbench, server, "oltp_point_select", clients, arguments.seconds),
            "epoll": partial(bare, loop, "epoll", server, clients, arguments.seconds),
            "io_uring": partial(bare, loop, "io_uring", server, clients, arguments.seconds),
            "at once": partial(ours, {**job, "gather": "off"}, clients, arguments.seconds),
            "ours": partial(ours, job, clients, arguments.seconds),
        })  # fmt: skip
        print(row.format(
            clients, *(spread(runs) for runs in found.values()),
            ratio(COST, found["ours"], found["sysbench"]), ratio(COST, found["at once"], found["io_uring"]),
            ratio(RATE, found["ours"], found["sysbench"]),
        ), flush=True)  # fmt: skip


def steps(server: Server, job: dict[str, Any], arguments: argparse.Namespace) -> None:
    """The table of instructions per point select."""
    loop, counter = built("bare_loop"), built("count_steps")
    _, database, socket = target(server)
    print(f"\ninstructions outside of the kernel per point select; medians of {arguments.rounds} (range)")
    row = "{:>11}" + 3 * "  {:>22}" + 2 * "  {:>12}"
    print(row.format(
        "connections", "bare io_uring", "checked", "ours, not gathering", "ours/bare", "ours/checked",
    ))  # fmt: skip
    for clients in CONNECTIONS:
        bare_loops = (
            [str(loop), way, str(clients), "3600", socket, database, str(ROWS)]
            for way in ("io_uring", "checked")
        )
        found = [
            stepped(counter, command, arguments) for command in (*bare_loops, ours_until_killed(job, clients))
        ]
        medians = [statistics.median(counts) for counts in found]
        said = [f"{statistics.median(all):.0f} ({min(all):.0f}-{max(all):.0f})" for all in found]
        ratios = [f"{medians[2] / other:.2f}" for other in medians[:2]]
        print(row.format(clients, *said, *ratios), flush=True)


def ours_until_killed(job: dict[str, Any], clients: int) -> list[str]:
    """The command of a load on one thread that looks at every answer at once."""
    run = "import sys; from dbdyno.driver import _driver; _driver.run(sys.argv[1])"
    given = {"gather": "off", "threads": 1, "clients": clients, "warmup_s": 0.0, "duration_s": 3600.0}
    return [sys.executable, "-c", run, json.dumps({**job, **given})]


def stepped(counter: Path, command: list[str], arguments: argparse.Namespace) -> list[float]:
    """Instructions per operation of the busiest thread of a load that runs until it is killed, by window."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
        try:
            time.sleep(max(arguments.seconds, 3.0))
            stats = [path.read_text().split() for path in Path(f"/proc/{load.pid}/task").glob("*/stat")]
            busiest = max(stats, key=lambda stat: int(stat[13]) + int(stat[14]))[0]
            counting = [str(counter), busiest, str(STEPPED), str(arguments.rounds)]
            said = subprocess.run(counting, capture_output=True, text=True, check=True).stdout
        finally:
            load.kill()
    windows = [line.split() for line in said.splitlines()]
    return [int(instructions) / int(operations) for instructions, operations, _ in windows]


def mixed(server: Server, job: dict[str, Any], arguments: argparse.Namespace) -> None:
    """read_write: transactions per second and client CPU per transaction."""
    print(f"\nread_write, client CPU per transaction, us; medians of {arguments.rounds} (range)")
    row = "{:>11}  {:>22}  {:>22}  {:>13}  {:>16}"
    print(row.format("clients", "sysbench", "ours", "ours/sysbench", "tx/s: ours/sysb."))
    for clients in (8, 64):
        found = rounds(arguments, {
            "sysbench": partial(sysbench, server, "oltp_read_write", clients, arguments.seconds),
            "ours": partial(ours, {**job, "workload": "read_write"}, clients, arguments.seconds),
        })  # fmt: skip
        print(row.format(
            clients, spread(found["sysbench"]), spread(found["ours"]),
            ratio(COST, found["ours"], found["sysbench"]), ratio(RATE, found["ours"], found["sysbench"]),
        ), flush=True)  # fmt: skip


def statements(job: dict[str, Any], arguments: argparse.Namespace) -> None:
    """What it costs to time each of the 20 statements of read_write (`by_statement`)."""
    print(f"\nread_write, client CPU per transaction, us; medians of {arguments.rounds} (range)")
    row = "{:>11}  {:>22}  {:>22}  {:>13}  {:>16}"
    print(row.format("clients", "plain", "by statement", "CPU: ratio", "tx/s: ratio"))
    plain = {**job, "workload": "read_write"}
    for clients in (8, 64):
        found = rounds(arguments, {
            "plain": partial(ours, plain, clients, arguments.seconds),
            "timed": partial(ours, {**plain, "by_statement": True}, clients, arguments.seconds),
        })  # fmt: skip
        print(row.format(
            clients, spread(found["plain"]), spread(found["timed"]),
            ratio(COST, found["timed"], found["plain"]), ratio(RATE, found["timed"], found["plain"]),
        ), flush=True)  # fmt: skip


def connections(server: Server, job: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Memory and threads of the process that holds so many driven connections."""
    held(job, arguments, 10_000)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (
        tempfile.TemporaryDirectory(prefix="dyno-bench-") as folder,
        bare_server(Path(folder) / "socket") as url,
    ):
        many = min(110_000, most - 1_000)
        load = {"kind": "open", "rate_per_s": 10_000.0}
        held({**job, "url": url, "threads": 1, "load": load}, arguments, many)


@contextmanager
def bare_server(path: Path) -> Iterator[str]:
    """The URL of a server that gives every client the same row."""
    with subprocess.Popen([built("bare_server"), path], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        yield f"mysql://dyno@localhost/dyno?socket={path}"
        server.kill()


def held(job: dict[str, Any], arguments: argparse.Namespace, many: int) -> None:
    """Drives so many connections, and prints what the process takes for them."""
    with LoadProcess({}, Launch()) as load:
        # An answer shows that the process has loaded the driver.
        load.query(job["url"], "SELECT 1")
        before = _memory_bytes(load.process_id)
        seen: list[tuple[int, int]] = []
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(load.process_id, seen, over))
        watcher.start()
        began = time.monotonic()
        duration_s = max(arguments.seconds, 5.0)
        tally = load.run(Job.model_validate(job).but(clients=many, warmup_s=1.0, duration_s=duration_s))
        over.set()
        watcher.join()
    most, threads = max(size for size, _ in seen), max(count for _, count in seen)
    print(
        f"\n{many:,} connections from one process: {most / 1e6:.0f} MB resident at most "
        f"({before / 1e6:.0f} MB of it Python and the driver before the first, "
        f"{(most - before) / many / 1e3:.1f} kB for each connection), {threads} threads, "
        f"{tally.throughput_per_s:,.0f} queries/s, "
        f"errors {tally.errors}, {time.monotonic() - began:.1f} s in all"
    )


def _watch(process_id: int, seen: list[tuple[int, int]], over: threading.Event) -> None:
    while not over.wait(0.1):
        threads = len(list(Path(f"/proc/{process_id}/task").iterdir()))
        seen.append((_memory_bytes(process_id), threads))


def _memory_bytes(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * resource.getpagesize()


def rounds(
    arguments: argparse.Namespace, contenders: dict[str, Callable[[], Outcome]]
) -> dict[str, list[Outcome]]:
    """Every contender once a round, so that what disturbs the machine for a while disturbs all."""
    found: dict[str, list[Outcome]] = {name: [] for name in contenders}
    for _ in range(arguments.rounds):
        for name, run in contenders.items():
            found[name].append(run())
    return found


def ratio(figure: Callable[[Outcome], float], ours: list[Outcome], theirs: list[Outcome]) -> str:
    pairs = zip(map(figure, ours), map(figure, theirs), strict=True)
    return f"{statistics.median(mine / other for mine, other in pairs):.2f}"


def spread(runs: list[Outcome]) -> str:
    costs = [run.cpu_us_per_op for run in runs]
    return f"{statistics.median(costs):.2f} ({min(costs):.2f}-{max(costs):.2f})"


def ours(job: dict[str, Any], clients: int, seconds: float) -> Outcome:
    given = {**job, "clients": clients, "warmup_s": 0.0, "duration_s": seconds}
    before = _cpu_s(resource.RUSAGE_SELF)
    tally = json.loads(_driver.run(json.dumps(given)))
    spent_s = _cpu_s(resource.RUSAGE_SELF) - before
    failed = {kind: count for kind, count in tally["errors"].items() if not kind.startswith(RETRIED)}
    if failed:
        raise DynoError(f"our run had errors: {failed}")
    return Outcome(tally["throughput_per_s"], spent_s / tally["operations"] * 1e6)


def sysbench(server: Server, script: str, clients: int, seconds: float) -> Outcome:
    user, database, socket = target(server)
    command = [
        "sysbench", script, f"--mysql-socket={socket}", f"--mysql-user={user}", f"--mysql-db={database}",
        f"--table-size={ROWS}", "--rand-type=uniform", f"--threads={clients}", f"--time={seconds:g}", "run",
    ]  # fmt: skip
    said, spent_s = timed(command)
    operations = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per", said)
    if operations is None:
        raise DynoError(f"sysbench failed: {said[-400:]}")
    return Outcome(float(operations[2]), spent_s / int(operations[1]) * 1e6)


def bare(loop: Path, way: str, server: Server, clients: int, seconds: float) -> Outcome:
    _, database, socket = target(server)
    said, spent_s = timed([str(loop), way, str(clients), f"{seconds:g}", socket, database, str(ROWS)])
    operations, lasted_s = map(float, said.split())
    return Outcome(operations / lasted_s, spent_s / operations * 1e6)


def timed(command: list[str]) -> tuple[str, float]:
    """What a command printed, and the CPU seconds of its process."""
    before = _cpu_s(resource.RUSAGE_CHILDREN)
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    spent_s = _cpu_s(resource.RUSAGE_CHILDREN) - before
    if finished.returncode != 0:
        raise DynoError(f"{command[0]} failed: {(finished.stderr or finished.stdout)[-400:]}")
    return finished.stdout, spent_s


def _cpu_s(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def target(server: Server) -> tuple[str, str, str]:
    url = urlsplit(server.url)
    return url.username or "", url.path.lstrip("/"), parse_qs(url.query)["socket"][0]


def built(name: str) -> Path:
    """A program of this folder, built beside those of the virtual environment."""
    program = Path(sys.executable).with_name(name)
    source = Path(__file__).with_name(f"{name}.c")
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["cc", "-O2", "-o", program, source], check=True)
    return program


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
