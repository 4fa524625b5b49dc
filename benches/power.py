"""What is a verdict worth? A real MariaDB against itself (A/A), and held by SIGSTOP for a share of the time.

    python benches/power.py [--minutes M] [--blocks N] [--margin SHARE] [--clients C]

One server, many short trials of point selects, in randomised blocks as a study has them: the baseline, the
baseline again, and the server stopped for 2, 5 and 10 % of every 100 ms. In a closed loop a stop of a share s
takes s of the speed away, so the true ratios are known: 1, 0.98, 0.95, 0.9. A process of its own sends the
signals, in the baseline too, where it only lets the server go on, so that all trials bear its cost; it
reports how long it really held the server, and the ratio expected is of that.

Every N blocks are one comparison per share. Each is judged twice by the code that judges studies: with all N
blocks and Student's interval, and as `dyno run --until margin` would, which looks after every block and ends
as soon as a verdict stands. Counts have their Clopper-Pearson interval: that of the false alarms must reach
down to 5 % or less.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from driver import ROWS, mariadb
from scipy import stats
from stall import send

from dbdyno.analyse.assurance import ASSURANCE
from dbdyno.analyse.intervals import BLOCKS_LEAST, beyond, judge, ratio_of
from dbdyno.analyse.model import Method, Ratio, Verdict
from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError
from dbdyno.study import Interval

PERIOD_S = 0.1
WARMUP_S, DURATION_S = 0.1, 0.3
BASELINE, SHARES = "baseline", (0.0, 0.02, 0.05, 0.1)
CONFIDENCE = 0.95
SEED = 1
CALLED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True)
class Measured:
    """One trial: its speed, and the share of the time for which the server was really held."""

    per_s: float
    held: float


Block = dict[str | float, Measured]
"""The trials of a block: the baseline's, and one for each share."""


@dataclass(frozen=True)
class Judged:
    """One comparison: what was said of it, and after how many blocks."""

    verdict: Verdict
    blocks: int

    @property
    def different(self) -> bool:
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--blocks", type=int, default=8, help="blocks of one comparison")
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--clients", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.blocks < BLOCKS_LEAST or arguments.margin <= 0 or arguments.clients < 1:
        parser.error(f"at least {BLOCKS_LEAST} blocks, a margin above 0, and one client")
    with mariadb() as server:
        blocks = _measured(server, arguments)
    _print(blocks, arguments)


def _measured(server: Server, arguments: argparse.Namespace) -> list[Block]:
    """As many whole blocks as the time has room for, each in an order of its own."""
    job: dict[str, Any] = {
        "url": server.url,
        "workload": "point_select",
        "options": {"table_size": ROWS},
        "clients": arguments.clients,
        "warmup_s": WARMUP_S,
        "duration_s": DURATION_S,
    }
    _driver.prepare(json.dumps(job))
    # The first seconds of a server are no trial.
    _driver.run(json.dumps({**job, "duration_s": 2.0}))
    order, blocks = random.Random(SEED), list[Block]()
    over = time.monotonic() + 60.0 * arguments.minutes
    while time.monotonic() < over:
        names = [BASELINE, *SHARES]
        order.shuffle(names)
        blocks.append({name: _trial(server, {**job, "seed": len(blocks)}, name) for name in names})
    return blocks


def _trial(server: Server, job: dict[str, Any], name: str | float) -> Measured:
    with holding(server, 0.0 if isinstance(name, str) else name) as held:
        tally = json.loads(_driver.run(json.dumps(job)))
    return Measured(tally["throughput_per_s"], statistics.fmean(held) if held else 0.0)


@contextmanager
def holding(server: Server, share: float) -> Iterator[list[float]]:
    """Stops the server for a share of every period. Gives a list that holds, once it is over, the share of
    each period for which it really was.
    """
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(server.process_ids, share, theirs), daemon=True)
    process.start()
    held: list[float] = []
    try:
        yield held
    finally:
        ours.send(None)
        held += ours.recv()
        process.join()


def _hold(process_ids: Sequence[int], share: float, end: Any) -> None:
    with suppress(PermissionError):
        # Woken late on a busy machine, it would hold the server for longer than it was asked to.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    began, turn, held = time.monotonic(), 1, list[float]()
    while not end.poll(max(0.0, began + turn * PERIOD_S - time.monotonic())):
        send(process_ids, "SIGSTOP" if share else "SIGCONT")
        stopped = time.monotonic()
        time.sleep(share * PERIOD_S)
        send(process_ids, "SIGCONT")
        held.append((time.monotonic() - stopped) / PERIOD_S if share else 0.0)
        turn += 1
    end.send(held)


def fixed(logs: Sequence[float], method: Method) -> Judged:
    """Judged once, with all blocks."""
    return Judged(_verdict(ratio_of(method.response, logs, CONFIDENCE), method), len(logs))


def sequential(logs: Sequence[float], method: Method) -> Judged:
    """Judged after every block, as `dyno run --until margin` does, until a verdict stands."""
    for blocks in range(BLOCKS_LEAST, len(logs) + 1):
        effect = ratio_of(method.response, logs[:blocks], CONFIDENCE, Interval.ANYTIME)
        verdict = _verdict(effect, method)
        if verdict is Verdict.NO_EFFECT or (effect and verdict in CALLED and beyond(effect, method.margin)):
            return Judged(verdict, blocks)
    return Judged(Verdict.INCONCLUSIVE, len(logs))


def _verdict(effect: Ratio | None, method: Method) -> Verdict:
    return judge(effect, method)[0] if effect else Verdict.INCONCLUSIVE


def _print(blocks: list[Block], arguments: argparse.Namespace) -> None:
    method = Method(
        response="throughput",
        higher_is_better=True,
        margin=arguments.margin,
        confidence=CONFIDENCE,
        comparisons=1,
        confidence_each=CONFIDENCE,
        assurance=ASSURANCE,
        blocks_least=BLOCKS_LEAST,
    )
    comparisons = len(blocks) // arguments.blocks
    print(
        f"MariaDB, point selects, {arguments.clients} clients; {len(blocks)} blocks of {1 + len(SHARES)}"
        f" trials of {DURATION_S:g} s; {comparisons} comparisons of {arguments.blocks} blocks;"
        f" margin {arguments.margin:.1%}"
    )
    if not comparisons:
        sys.exit("error: too little time for one comparison; give more --minutes, or fewer --blocks")
    row = "{:>9}  {:>8}  {:>8}  {:>7}   {:>24}  {:>24}  {:>9}  {:>13}"
    print(row.format("", "", "", "spread", "fixed: called different", "until margin: different", "no effect",
                     "blocks, median"))  # fmt: skip
    print(row.format("held", "expected", "seen", "of logs", "", "", "", ""))
    for share in SHARES:
        logs = [math.log(block[share].per_s / block[BASELINE].per_s) for block in blocks]
        held = statistics.fmean(block[share].held for block in blocks)
        starts = range(0, comparisons * arguments.blocks, arguments.blocks)
        parts = [logs[start : start + arguments.blocks] for start in starts]
        once, looked = [fixed(part, method) for part in parts], [sequential(part, method) for part in parts]
        print(row.format(
            f"{held:.2%}" if share else "A/A", f"{1 - held:.4f}", f"{math.exp(statistics.fmean(logs)):.4f}",
            f"{statistics.stdev(logs):.2%}", counted(once), counted(looked),
            sum(one.verdict is Verdict.NO_EFFECT for one in looked),
            f"{statistics.median(one.blocks for one in looked):g}",
        ))  # fmt: skip


def counted(found: Sequence[Judged]) -> str:
    """How many of how many were called different, with that share's interval (Clopper and Pearson, 1934)."""
    count = sum(one.different for one in found)
    share = stats.binomtest(count, len(found)).proportion_ci(CONFIDENCE)
    return f"{count} of {len(found)} ({share.low:.0%} - {share.high:.0%})"


if __name__ == "__main__":
    try:
        main()
    except DynoError as error:
        sys.exit(f"error: {error.message}")
