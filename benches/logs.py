"""What reading a log costs, beside pt-query-digest and pgbadger on the same files.

    python -m benches.logs [--statements COUNT ...] [--seed SEED] [--rounds COUNT] [--folder FOLDER]

Makes a slow log as MariaDB writes it and a log as PostgreSQL writes it, with so many statements of forty
digests each: points, ranges, lists of several lengths, INSERTs of several rows, long texts. Each line is a
process of its own, and those of one file take turns. CPU is that of the process and of its children, in
seconds, the median over rounds with the lowest and the highest; memory is the most that one process had
resident. `growth` is the CPU of one statement over that of one in the smallest file: 1 is linear.

pt-query-digest and pgbadger are those on the path; one that is not there has no line.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

OURS = "import sys; from pathlib import Path; from dbdyno.sql_logs.read import traffic_of; " \
    "print(traffic_of([Path(sys.argv[1])]).count)"  # fmt: skip
PROCESSES = 32
START_S = 1_795_363_200


def statements(count: int, seed: int) -> Iterator[tuple[str, float]]:
    """Statements, and how long each took in seconds."""
    draw = random.Random(seed)
    for _ in range(count):
        table, number = f"t{draw.randrange(8)}", draw.randrange(1, 1_000_000)
        form = draw.randrange(5)
        if form == 0:
            text = f"SELECT id, name FROM {table} WHERE id = {number}"
        elif form == 1:
            text = f"SELECT sum(k) FROM {table}\n WHERE id BETWEEN {number} AND {number + draw.randrange(99)}"
        elif form == 2:
            listed = ", ".join(str(draw.randrange(10**6)) for _ in range(draw.randrange(1, 9)))
            text = f"SELECT * FROM {table} WHERE id IN ({listed}) ORDER BY id LIMIT {draw.choice((10, 50))}"
        elif form == 3:
            rows = ", ".join(
                f"({draw.randrange(10**6)}, 'name {draw.randrange(10**4)}', '2026-01-{day:02}')"
                for day in range(1, draw.randrange(2, 5))
            )
            text = f"INSERT INTO {table} (k, name, made) VALUES {rows}"
        else:
            note = f"it''s {'x' * draw.randrange(200)} {number}"
            text = f"UPDATE {table} SET note = '{note}' WHERE id = {number} AND k = {draw.randrange(100)}"
        yield text, draw.expovariate(1000)


def slow_log(path: Path, count: int, seed: int) -> None:
    with path.open("w") as file:
        file.write("/usr/sbin/mariadbd, Version: 11.8.3-MariaDB. started with:\nTcp port: 3306\n")
        file.write("Time\t\t    Id Command\tArgument\n")
        for number, (text, took_s) in enumerate(statements(count, seed)):
            at_s = START_S + number // 1000
            day, clock = divmod(at_s - START_S, 86_400)
            time = f"# Time: 2611{22 + day:02} {clock // 3600:2}:{clock // 60 % 60:02}:{clock % 60:02}\n"
            file.write(
                f"{time if number % 1000 == 0 else ''}# User@Host: app[app] @ web [10.0.0.1]\n"
                f"# Thread_id: {100 + number % PROCESSES}  Schema: shop  QC_hit: No\n"
                f"# Query_time: {took_s:.6f}  Lock_time: 0.000010  Rows_sent: 1  Rows_examined: 10\n"
                f"# Rows_affected: 0  Bytes_sent: 60\nSET timestamp={at_s};\n{text};\n"
            )


def postgresql_log(path: Path, count: int, seed: int) -> None:
    with path.open("w") as file:
        for number, (text, took_s) in enumerate(statements(count, seed)):
            hour, rest = divmod(number // 1000, 3600)
            clock = f"{hour % 24:02}:{rest // 60:02}:{rest % 60:02}.{number % 1000:03}"
            text = text.replace("\n", "\n\t")
            file.write(
                f"2026-11-{22 + hour // 24:02} {clock} UTC [{4000 + number % PROCESSES}] app@shop LOG:  "
                f"duration: {took_s * 1000:.3f} ms  statement: {text}\n"
            )


@dataclass
class Cost:
    """What one process took."""

    cpu_s: float
    peak_mib: float


def cost(command: Sequence[str]) -> Cost:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]}: {said.decode(errors='replace')[-500:]}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def readers(log: Path) -> dict[str, list[str]]:
    """The commands that read one of the logs, by name."""
    found = {"dyno": [sys.executable, "-c", OURS, str(log)]}
    if log.suffix == ".slow" and (peer := shutil.which("pt-query-digest")):
        found["pt-query-digest"] = [peer, "--limit", "50", str(log)]
    if log.suffix == ".pg" and (peer := shutil.which("pgbadger")):
        prefix = "%m [%p] %u@%d "
        found["pgbadger"] = [peer, "-f", "stderr", "-p", prefix, "-q", "-o", f"{log}.html", str(log)]
    return found


def compare(log: Path, count: int, rounds: int, first: dict[str, float]) -> None:
    costs: dict[str, list[Cost]] = {name: [] for name in readers(log)}
    for number in range(rounds):
        turn = list(readers(log).items())
        for name, command in turn if number % 2 == 0 else reversed(turn):
            costs[name].append(cost(command))
    for name, found in costs.items():
        cpu_s = [each.cpu_s for each in found]
        each_us = median(cpu_s) / count * 1e6
        growth = each_us / first.setdefault(f"{log.suffix} {name}", each_us)
        print(
            f"{log.suffix[1:]:5} {count:>10,}  {name:16} {median(cpu_s):8.2f} s"
            f" ({min(cpu_s):.2f} to {max(cpu_s):.2f})  {count / median(cpu_s):>9,.0f} a CPU second"
            f"  {max(each.peak_mib for each in found):7,.0f} MiB  growth {growth:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--statements", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    writers: dict[str, Callable[[Path, int, int], None]] = {"slow": slow_log, "pg": postgresql_log}
    first: dict[str, float] = {}
    with TemporaryDirectory(dir=asked.folder) as folder:
        for count in asked.statements:
            for suffix, write in writers.items():
                log = Path(folder) / f"log.{suffix}"
                write(log, count, asked.seed)
                compare(log, count, asked.rounds, first)
                log.unlink()


if __name__ == "__main__":
    main()
