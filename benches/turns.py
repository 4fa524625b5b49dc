"""Is a server that takes turns measured as one that has the host for itself?

    python -m benches.turns [PART ...] [--rounds N] [--engines E ...] [--workloads W ...]

Each round compares two ways of measuring one server, in an order that is drawn; a line tells the ratio of
the two with Student's interval of 95 % over rounds. A second server of the same engine takes the turns
between.

settling  the first third of a slice over its last: the slice begins 0.1 s after the load does
tails     p99 of slices over p99 of a load without slices (which has no other server's turns in it)
together  throughput with a second server up, that has its turns, over that with no other server. Between two
          slices of the server alone nothing happens for as long as the other's turn takes
deferred  what a server writes, and the CPU time that it takes, while the other has its turn, over all of it
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from dbdyno.analyse.intervals import centre_of
from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.driver.tally import Tally
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine, Server
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import SLICE_S, Reference
from dbdyno.study.trials import SETTLE_S
from dbdyno.trial.observe.watch import ProcessCounters

CLIENTS, ROWS = 4, 100_000
WARMUP_S = 1.0
TURNS = 4
"""Slices of each server in a round."""
THIRD_S = SLICE_S / 3.0
VERSIONS = {"mariadb": "11.8", "postgresql": "15"}
OPTIONS = {"table_size": ROWS}


def main() -> None:
    arguments = _arguments()
    for name in arguments.engines:
        for workload in arguments.workloads:
            with ExitStack() as undo:
                pair = Pair(name, workload, undo)
                for part in arguments.parts:
                    PARTS[part](pair, arguments.rounds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--engines", nargs="+", default=list(VERSIONS))
    parser.add_argument("--workloads", nargs="+", default=["point_select", "read_write"])
    return parser.parse_args()


class Pair:
    """Two servers with equal data, of which the second can be stopped and started."""

    def __init__(self, engine: str, workload: str, undo: ExitStack) -> None:
        self.name, self.workload = engine, workload
        self._undo = undo
        self._engine: Engine = registry.engine(engine)
        self._installation: Installation = self._engine.obtaining.locate(Reference(engine, VERSIONS[engine]))
        self._home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="dyno-bench-")))
        self.first = self._begun("first")
        self.second: Server | None = self._begun("second")
        undo.callback(self.stop_second)

    def job(self, server: Server, slices: int | None, settle_s: float, seconds: float) -> Job:
        return Job(
            url=server.url,
            workload=self.workload,
            options=OPTIONS,
            clients=CLIENTS,
            warmup_s=WARMUP_S,
            duration_s=seconds,
            slices=slices,
            settle_s=settle_s,
        )

    def stop_second(self) -> None:
        if self.second is not None:
            self.second.stop()
            self.second = None

    def start_second(self) -> Server:
        if self.second is None:
            self.second = self._start("second")
        return self.second

    def _begun(self, name: str) -> Server:
        (self._home / f"run-{name}").mkdir(mode=0o700)
        self._engine.life.initialise(self._installation, self._home / name, {})
        server = self._start(name)
        if name == "first":
            self._undo.callback(server.stop)
        with loads(1) as (load,):
            load.prepare(self.job(server, None, 0.0, 1.0))
        return server

    def _start(self, name: str) -> Server:
        return self._engine.life.start(
            self._installation, self._home / name, self._home / f"run-{name}", {}, Launch()
        )


@contextmanager
def loads(count: int) -> Iterator[Sequence[LoadProcess]]:
    """So many load processes."""
    with ExitStack() as undo:
        found = [LoadProcess({}, Launch()) for _ in range(count)]
        for load in found:
            undo.callback(load.close)
        yield found


def in_turn(each: Sequence[tuple[LoadProcess, Job]], draw: random.Random) -> list[Tally]:
    """The tallies of loads that took turns, slice by slice, in an order that each round of turns draws."""
    for load, job in each:
        load.begin(job)
    tallies: dict[int, Tally] = {}
    while len(tallies) < len(each):
        for number in draw.sample(range(len(each)), len(each)):
            if number not in tallies and (tally := each[number][0].go_on()) is not None:
                tallies[number] = tally
    return [tallies[number] for number in range(len(each))]


def beside_another(pair: Pair, draw: random.Random) -> Tally:
    """The tally of the first server, whose load takes turns with that of the second."""
    servers = pair.first, pair.start_second()
    with loads(len(servers)) as each:
        jobs = [pair.job(server, TURNS, SETTLE_S, TURNS * SLICE_S) for server in servers]
        return in_turn(list(zip(each, jobs, strict=True)), draw)[0]


def settling(pair: Pair, rounds: int) -> None:
    """Two loads on the first server, one of which is measured a slice's two thirds later."""
    draw, logs = random.Random(1), []
    late_s = SETTLE_S + SLICE_S - THIRD_S
    second = pair.start_second()
    for _ in range(rounds):
        with loads(4) as (early, late, beside, beside_late):
            tallies = in_turn(
                [
                    (early, pair.job(pair.first, TURNS, SETTLE_S, TURNS * THIRD_S)),
                    (beside, pair.job(second, TURNS, SETTLE_S, TURNS * SLICE_S)),
                    (late, pair.job(pair.first, TURNS, late_s, TURNS * THIRD_S)),
                    (beside_late, pair.job(second, TURNS, SETTLE_S, TURNS * SLICE_S)),
                ],
                draw,
            )
        logs.append(math.log(tallies[0].throughput_per_s / tallies[2].throughput_per_s))
    tell_ratio(pair, "first third / last third of a slice", logs)


def tails(pair: Pair, rounds: int) -> None:
    """p99 of slices over that of a whole load."""
    draw, logs = random.Random(2), []

    def whole() -> Tally:
        with loads(1) as (load,):
            return load.run(pair.job(pair.first, None, 0.0, TURNS * SLICE_S))

    for _ in range(rounds):
        found = _drawn(draw, partial(beside_another, pair, draw), whole)
        logs.append(math.log(_p99(found[0]) / _p99(found[1])))
    tell_ratio(pair, "p99 of slices / of a whole load", logs)


def _p99(tally: Tally) -> float:
    if tally.latency_us.p99 is None:
        sys.exit("too few transactions for a p99: give more --clients")
    return tally.latency_us.p99


def together(pair: Pair, rounds: int) -> None:
    """Throughput beside a server that has its turns, over that without one."""
    draw, logs = random.Random(3), []
    turn_s = SETTLE_S + SLICE_S

    def alone() -> Tally:
        pair.stop_second()
        with loads(1) as (load,):
            load.begin(pair.job(pair.first, TURNS, SETTLE_S, TURNS * SLICE_S))
            while (tally := load.go_on()) is None:
                time.sleep(turn_s)
            return tally

    for _ in range(rounds):
        found = _drawn(draw, partial(beside_another, pair, draw), alone)
        logs.append(math.log(found[0].throughput_per_s / found[1].throughput_per_s))
    tell_ratio(pair, "with another server up / alone", logs)


def _drawn(draw: random.Random, *ways: Callable[[], Tally]) -> list[Tally]:
    """What each way gives, carried out in an order that is drawn."""
    found = {number: ways[number]() for number in draw.sample(range(len(ways)), len(ways))}
    return [found[number] for number in range(len(ways))]


def deferred(pair: Pair, rounds: int) -> None:
    """The shares of writes and of CPU time that the first server has while the second one has its turn."""
    second = pair.start_second()
    processes = ProcessCounters(tuple(pair.first.process_ids))
    shares: dict[str, list[float]] = {"written_bytes": [], "cpu_s": []}
    for _ in range(rounds):
        own, others = dict.fromkeys(shares, 0.0), dict.fromkeys(shares, 0.0)
        with loads(2) as (load, beside):
            load.begin(pair.job(pair.first, TURNS, SETTLE_S, TURNS * SLICE_S))
            beside.begin(pair.job(second, TURNS, SETTLE_S, TURNS * SLICE_S))
            before = _spent(processes)
            for turn in range(2 * TURNS):
                (beside if turn % 2 else load).go_on()
                now = _spent(processes)
                taken = others if turn % 2 else own
                for name, value in now.items():
                    taken[name] += value - before[name]
                before = now
        for name, found in shares.items():
            if whole := own[name] + others[name]:
                found.append(others[name] / whole)
    for name, found in shares.items():
        if found:
            tell(pair, f"{name} in the other's turns / in all", centre_of(found, 0.95), found)


def _spent(processes: ProcessCounters) -> dict[str, float]:
    totals, _ = processes.read()
    return {
        "written_bytes": totals.get("written_bytes", 0.0),
        "cpu_s": totals["cpu_user_s"] + totals["cpu_system_s"],
    }


def tell_ratio(pair: Pair, what: str, logs: Sequence[float]) -> None:
    mean, low, high = (None if each is None else math.exp(each) for each in centre_of(logs, 0.95))
    tell(pair, what, (mean, low, high), logs)


def tell(
    pair: Pair, what: str, found: tuple[float | None, float | None, float | None], each: Sequence[float]
) -> None:
    """A line: what was found with its interval, and how far rounds spread."""
    centre, *ends = ("?" if value is None else f"{value:.4f}" for value in found)
    spread = statistics.stdev(each) if len(each) > 1 else 0.0
    print(f"{pair.name:10}  {pair.workload:12}  {what}: {centre} ({' - '.join(ends)}), "
          f"{len(each)} rounds that spread by {spread:.1%}", flush=True)  # fmt: skip


PARTS: dict[str, Callable[[Pair, int], None]] = {
    "settling": settling,
    "tails": tails,
    "together": together,
    "deferred": deferred,
}


if __name__ == "__main__":
    main()
