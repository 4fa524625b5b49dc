"""What do slices give, and what do they disturb? The same studies side by side and one after the other.

    python -m benches.slices [--minutes M] [--workloads NAME ...] [--blocks N]

Each study is carried out by `dyno run`, with a real MariaDB and a store of its own. It compares four
servers: the baseline, the baseline again (A/A), one that is held by SIGSTOP for 5 % of the time (see
power.py), and one with a redo log so small that it writes its pages back all the time. Beside the last one
the true ratios of the two others are still 1 and 0.95: what their estimates lack is the bias, and what
differs from block to block is the spread. The arrangements take turns until the time is over, at least once
each.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benches.power import FREE, MARKER, WORKLOADS, holding
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from dbdyno.study import BASELINE, TWIN, Arrangement

HELD, WRITES = 0.05, "writes much"
MARKED = FREE + 1 + round(1000 * HELD)
STUDY = """
title  = "Slices"
engine = "mariadb@11.8"
design = "list"
aa     = true
blocks = {blocks}
arrangement = "{arrangement}"
[workload]
name     = "{workload}"
clients  = 2
warmup   = "1s"
duration = "4s"
[[variants]]
levels = {{ "config.{marker}" = {free}, "config.innodb_log_file_size" = "96M" }}
[[variants]]
name   = "held"
levels = {{ "config.{marker}" = {marked} }}
[[variants]]
name   = "{writes}"
levels = {{ "config.innodb_log_file_size" = "4M" }}
"""


@dataclass(frozen=True)
class Carried:
    """One study: the seconds that it took, the logs of each variant's ratios, a block each, and the share of
    the time for which the held server really was."""

    seconds: float
    logs: dict[str, list[float]]
    held: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS)
    parser.add_argument("--blocks", type=int, default=6)
    arguments = parser.parse_args()
    cases = list(itertools.product(arguments.workloads, Arrangement))
    done: dict[tuple[str, Arrangement], list[Carried]] = {case: [] for case in cases}
    over = time.monotonic() + 60.0 * arguments.minutes
    while not done[cases[-1]] or time.monotonic() < over:
        for case in cases:
            done[case].append(carried_out(*case, arguments.blocks))
    show(done)


def carried_out(workload: str, arrangement: Arrangement, blocks: int) -> Carried:
    """One run. Raises SystemExit where it ended without records of all variants."""
    text = STUDY.format(
        workload=workload, arrangement=arrangement, blocks=blocks, marker=MARKER, free=FREE, marked=MARKED,
        writes=WRITES,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="dyno-slices-") as name:
        study, url = Path(name) / "study.toml", f"sqlite:///{name}/store.db"
        study.write_text(text)
        command = [sys.executable, "-c", "from dbdyno.cli import main; main()", "run", str(study)]
        command += ["--quiet", "--json", "--wait", "24h", "--seed", str(secrets.randbelow(10**9))]
        environment = {**os.environ, "XDG_DATA_HOME": name, "DYNO_STORE": url}
        began = time.monotonic()
        with holding() as held:
            said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        if not said.stdout:
            sys.exit(said.stderr)
        with Store(url) as store:
            records = store.records(store.run("last").run)
    return Carried(seconds, logs_of(records), held.get(MARKED, 0.0))


def logs_of(records: list[Record]) -> dict[str, list[float]]:
    """Of each variant but the baseline, the log of its ratio in every block that has both."""
    speeds = {
        (one.block, one.variant): one.tally.operations / one.tally.duration_s for one in records if one.tally
    }
    logs: dict[str, list[float]] = {}
    for (block, variant), per_s in speeds.items():
        base_per_s = speeds.get((block, BASELINE), 0.0)
        if variant != BASELINE and per_s and base_per_s:
            logs.setdefault(variant, []).append(math.log(per_s / base_per_s))
    return logs


def show(done: dict[tuple[str, Arrangement], list[Carried]]) -> None:
    row = "{:12}  {:20}  {:>9}  {:>11}  {:>6}  {:>8}  {:>8}  {:>7}  {:>7}"
    print(row.format("workload", "arrangement", "s a block", "variant", "blocks", "expected", "seen", "bias",
                     "spread"))  # fmt: skip
    for (workload, arrangement), runs in done.items():
        held = statistics.fmean(run.held for run in runs)
        for variant, expected in ((TWIN, 1.0), ("held", 1 - held), (WRITES, None)):
            logs = [log for run in runs for log in run.logs.get(variant, [])]
            if len(logs) < 2:
                continue
            blocks_s = sum(run.seconds for run in runs) / len(logs)
            seen = math.exp(statistics.fmean(logs))
            print(row.format(
                workload, arrangement, f"{blocks_s:.1f}", variant.replace("baseline-twin", "A/A"), len(logs),
                f"{expected:.4f}" if expected else "-", f"{seen:.4f}",
                f"{seen / expected - 1:+.1%}" if expected else "-", f"{statistics.stdev(logs):.1%}",
            ))  # fmt: skip


if __name__ == "__main__":
    main()
