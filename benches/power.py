"""What is a verdict worth? Whole studies of a real MariaDB against itself, and against one that is held.

    python -m benches.power [--comparisons N] [--minutes M] [--workloads NAME ...] [--shares SHARE ...]
                            [--results FILE] [--for MINUTES] [--quick]

Each comparison is a run of its own: `dyno run STUDY --budget M` on a study of two variants, with a seed, data
folder and store of its own. The candidate differs in `lock_wait_timeout`, which nothing waits for; its value
says what is done to the server. A process of the bench finds the servers and stops them (SIGSTOP) for that
share of every 100 ms. In a closed loop a stop of a share s takes s of the speed away, so the true ratio is
known. To stop and wake its threads costs a server time as well, so all servers are stopped equally often;
one that is not held goes on at once.

The held server must be called slower, and the server against itself (A/A) neither faster nor slower. Counts
have their Clopper-Pearson interval. By default an A/A and 5 % have two minutes, and 2 % ten. With FILE each
comparison is a line of it as soon as it is over, and those that it holds are not measured again: a bench that
was cut short goes on. With `--for` none begins that would not be over in so many minutes, by how long those
of its case took. `--quick` shows in minutes that all of it works; its counts mean nothing.

Intervals take blocks as independent. Two lines for each case say whether they are, from the ratios that are
kept: F is the spread of the runs' means over what their blocks make one expect (1 where all blocks of a run
share no luck), and the correlation is that of neighbouring blocks of a run (0). `--show` prints the tables of
FILE alone.

Two benches can run at once where each has its own CPUs (`taskset`), its own FILE, and its own
`DYNO_HOST_FOLDER`, which holds the lock that otherwise lets one wait for the other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dbdyno.analyse.intervals import share_interval
from dbdyno.host import paths

PERIOD_S = 0.1
LOOK_EVERY = 5
"""Periods between looks for servers that have started."""
MARKER, FREE = "lock_wait_timeout", 86_400
MARKED = re.compile(rb"--lock[-_]wait[-_]timeout=(\d+)")
MINUTES = {0.0: 2.0, 0.02: 10.0, 0.05: 2.0}
"""By the share of time that the server is held."""
WORKLOADS = ("point_select", "read_write")
STUDY = """
title  = "A server that is held"
engine = "mariadb@11.8"
{blocks}
[workload]
name     = "{workload}"
clients  = 2
warmup   = "{warmup_s}s"
duration = "{duration_s}s"
[factors]
"config.{marker}" = [{free}, {marked}]
[goal]
margin = "1%"
"""
DIFFERENT = ("faster", "slower")


@dataclass(frozen=True)
class Compared:
    """One comparison: what it was of, what its run said, and what share of the time the held server lost.
    `ratios` are its blocks', candidate / baseline, in their order."""

    workload: str
    share: float
    minutes: float
    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    held: float
    cause: str = ""
    ratios: tuple[float, ...] = ()
    took_s: float = 0.0

    @property
    def case(self) -> tuple[str, float, float]:
        return self.workload, self.share, self.minutes


def main() -> None:
    arguments = parsed()
    done = list(read(arguments.results)) if arguments.results else []
    if arguments.show:
        show([[one for one in done if one.case == case] for case in sorted({one.case for one in done})])
        return
    shares = (0.0, 0.05) if arguments.quick else arguments.shares
    cases = [
        (workload, share, arguments.minutes or MINUTES.get(share, 10.0))
        for workload, share in product(arguments.workloads, shares)
    ]
    # Case by case in every round, so that a change of the host meets all of them.
    began_s = time.monotonic()
    for number in range(1 if arguments.quick else arguments.comparisons):
        for case in cases:
            if sum(one.case == case for one in done) > number:
                continue
            if time.monotonic() - began_s + longest_s(case, done) > 60 * arguments.minutes_in_all:
                continue
            found = compared(*case, quick=arguments.quick)
            print(
                f"{found.workload} {found.share:.0%}: {found.verdict} {found.cause},"
                f" {found.took_s / 60:.1f} min",
                file=sys.stderr,
                flush=True,
            )
            done.append(found)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
    show([[one for one in done if one.case == case] for case in cases])


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=int, default=10, help="of each case")
    parser.add_argument("--minutes", type=float, help="of each comparison, whatever the case")
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS)
    parser.add_argument("--shares", nargs="+", type=float, default=tuple(MINUTES))
    parser.add_argument("--results", type=Path)
    parser.add_argument("--for", dest="minutes_in_all", type=float, default=math.inf, metavar="MINUTES")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.show and not arguments.results:
        parser.error("--show needs --results")
    if not all(0.0 <= share < 1.0 for share in arguments.shares):
        parser.error("a share lies between 0 and 1")
    return arguments


def longest_s(case: tuple[str, float, float], done: Iterable[Compared]) -> float:
    """How long a comparison of a case may take."""
    return max((one.took_s for one in done if one.case == case and one.took_s), default=60 * case[2])


def read(results: Path) -> Iterator[Compared]:
    """The comparisons that are over."""
    if results.exists():
        yield from (Compared(**json.loads(line)) for line in results.read_text().splitlines())


def compared(workload: str, share: float, minutes: float, quick: bool) -> Compared:
    """One run of a study, with a data folder of its own. It shares the installation, the pristine data and
    the host's calibration with all others. Raises SystemExit where the run ended without a verdict."""
    marked = FREE + 1 + round(1000 * share)
    text = STUDY.format(
        workload=workload, marker=MARKER, free=FREE, marked=marked, blocks="blocks = 6" if quick else "",
        warmup_s=0.2 if quick else 1, duration_s=0.5 if quick else 20,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="dyno-power-") as name:
        folder = Path(name)
        study, data = folder / "study.toml", folder / "dyno"
        study.write_text(text)
        data.mkdir()
        (data / "calibrations").symlink_to(paths.data_place() / "calibrations")
        command = [sys.executable, "-c", "from dbdyno.cli import main; main()", "run", str(study)]
        command += ["--quiet", "--json", "--wait", "24h", "--seed", str(secrets.randbelow(10**9))]
        command += [] if quick else ["--budget", f"{60 * minutes:g}s"]
        environment = {**os.environ, "XDG_DATA_HOME": name, "DYNO_STORE": f"sqlite:///{folder / 'store.db'}"}
        began_s = time.monotonic()
        with holding() as held:
            said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began_s
    if not said.stdout:
        sys.exit(said.stderr)
    [candidate] = [one for one in json.loads(said.stdout)["variants"] if one["role"] == "candidate"]
    effect = candidate["effect"] or {}
    return Compared(
        workload=workload,
        share=share,
        minutes=minutes,
        verdict=candidate["verdict"],
        ratio=effect.get("ratio"),
        low=effect.get("low"),
        high=effect.get("high"),
        blocks=effect.get("pairs", 0),
        held=taken(held, marked),
        cause=candidate["cause"],
        ratios=tuple(one["ratio"] for one in candidate["block_ratios"]),
        took_s=round(took_s, 1),
    )


@contextmanager
def holding() -> Iterator[dict[int, float]]:
    """Holds servers as their markers say. Gives, once it is over, the share of the time for which the servers
    of each marker were really held."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(theirs,), daemon=True)
    process.start()
    held: dict[int, float] = {}
    try:
        yield held
    finally:
        ours.send(None)
        held |= ours.recv()
        process.join()


def _hold(end: Any) -> None:
    with suppress(PermissionError):
        # Woken late on a busy machine, it would hold a server for longer than it was asked to.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    began, turn, servers = time.monotonic(), 0, dict[int, int]()
    held: dict[int, list[float]] = {}
    while not end.poll(max(0.0, began + turn * PERIOD_S - time.monotonic())):
        if turn % LOOK_EVERY == 0:
            servers = marked_servers()
        by_marker: dict[int, list[int]] = {}
        for process_id, marker in servers.items():
            by_marker.setdefault(marker, []).append(process_id)
        for marker, seconds in _held_once(by_marker).items():
            held.setdefault(marker, []).append(seconds / PERIOD_S)
        turn += 1
    end.send({marker: statistics.fmean(shares) for marker, shares in held.items()})


def _held_once(by_marker: dict[int, list[int]]) -> dict[int, float]:
    """Stops all of them, and lets them go on one after the other: the seconds of each marker."""
    stopped = time.monotonic()
    for process_ids in by_marker.values():
        send(process_ids, signal.SIGSTOP)
    seconds = {}
    for marker, process_ids in sorted(by_marker.items(), key=lambda each: share_of(each[0])):
        time.sleep(max(0.0, stopped + share_of(marker) * PERIOD_S - time.monotonic()))
        send(process_ids, signal.SIGCONT)
        seconds[marker] = time.monotonic() - stopped
    return seconds


def taken(held: dict[int, float], marked: int) -> float:
    """The share of the time that the marked servers had less than the free ones."""
    return 1 - (1 - held.get(marked, 0.0)) / (1 - held.get(FREE, 0.0))


def share_of(marker: int) -> float:
    """The share of the time for which servers of a marker are held."""
    return max(0, marker - FREE - 1) / 1000


def marked_servers() -> dict[int, int]:
    """The marker of every server of this bench that runs, by process. Servers of a bench beside it run on
    other CPUs."""
    cpus = os.sched_getaffinity(0)
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        process_id = int(path.parent.name)
        with suppress(OSError):
            marker = MARKED.search(path.read_bytes())
            if marker and os.sched_getaffinity(process_id) <= cpus:
                found[process_id] = int(marker[1])
    return found


def send(process_ids: Iterable[int], number: signal.Signals) -> None:
    """A signal to servers of which any may be gone."""
    for process_id in process_ids:
        with suppress(ProcessLookupError):
            os.kill(process_id, number)


def show(cases: Iterable[list[Compared]]) -> None:
    row = "{:12}  {:>6}  {:>7}  {:>8}  {:>6}  {:>6}  {:>22}  {:>12}  {:>9}"
    print(
        row.format(
            "workload",
            "held",
            "minutes",
            "expected",
            "seen",
            "+-",
            "called different",
            "inconclusive",
            "took",
        )
    )
    for found in filter(None, cases):
        workload, share, minutes = found[0].case
        ratios = [one.ratio for one in found if one.ratio]
        halves = [math.sqrt(one.high / one.low) - 1 for one in found if one.low and one.high]
        expected = 1 - statistics.fmean(one.held for one in found)
        print(row.format(
            workload, f"{share:.0%}" if share else "A/A", f"{minutes:g}", f"{expected:.4f}",
            f"{statistics.median(ratios):.4f}" if ratios else "-",
            f"{statistics.median(halves):.1%}" if halves else "-", counted(found),
            sum(one.verdict == "inconclusive" for one in found),
            f"{statistics.median(took) / 60:.1f} min" if (took := [one.took_s for one in found if one.took_s])
            else "-",
        ))  # fmt: skip

    for found in cases:
        logs = [np.log(one.ratios) for one in found if len(one.ratios) > LEAST_BLOCKS]
        if len(logs) > 1:
            workload, share, minutes = found[0].case
            print(f"{workload}, {share:.0%}, {minutes:g} min: {shared_luck(logs)}; {neighbours(logs)}")


LEAST_BLOCKS = 5
Logs = Sequence[np.ndarray[Any, np.dtype[np.float64]]]


def shared_luck(runs: Logs) -> str:
    """F of the runs' means against their blocks (one-way analysis of variance, Fisher 1925)."""
    found = stats.f_oneway(*runs)
    blocks = [len(run) for run in runs]
    size = (sum(blocks) - sum(count**2 for count in blocks) / sum(blocks)) / (len(runs) - 1)
    share = max(0.0, (found.statistic - 1) / (found.statistic - 1 + size))
    return (
        f"F {found.statistic:.2f} of {len(runs)} runs' means (p {found.pvalue:.3f}), so runs share"
        f" {share:.0%} of a block's variance"
    )


def neighbours(runs: Logs) -> str:
    """The correlation of neighbouring blocks, each run about its own mean, with its 95 % interval (Fisher's
    z). A run of n blocks without correlation has -1/n, which is added."""
    pairs = [(run[:-1] - run.mean(), run[1:] - run.mean()) for run in runs]
    before, after = (np.concatenate(side) for side in zip(*pairs, strict=True))
    middle = float(np.mean(before * after)) / float(
        np.mean(np.concatenate([run - run.mean() for run in runs]) ** 2)
    )
    middle += 1 / statistics.fmean(len(run) for run in runs)
    half = 1.96 / math.sqrt(len(before))
    low, high = (math.tanh(math.atanh(middle) + sign * half) for sign in (-1, 1))
    return f"correlation of neighbouring blocks {middle:+.2f} ({low:+.2f} to {high:+.2f})"


def counted(found: list[Compared]) -> str:
    """How many of how many were called different, with that share's interval (Clopper and Pearson, 1934)."""
    count = sum(one.verdict in DIFFERENT for one in found)
    low, high = share_interval(count, len(found))
    return f"{count} of {len(found)} ({low:.0%} - {high:.0%})"


if __name__ == "__main__":
    main()
