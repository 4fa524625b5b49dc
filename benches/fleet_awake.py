"""Does a worker change what is measured on its host? The same study with a worker and without one.

    python -m benches.fleet_awake [--pairs N] [--seed N]

A host, in a network of its own, carries a small study of SQLite out, and keeps it in a PostgreSQL on the
other side of that network: once as a worker of a fleet, whose controller is in the network of the store, and
once by `dyno run`, while no worker is there. Each pair does both, in an order that is drawn. Both variants of
the study are the same, so all that a pair compares is with / without: operations per second, and CPU time of
the load per operation. The intervals are Student's, over the logs of pairs. Needs root.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dbdyno.analyse.quantiles import t_quantile
from dbdyno.driver.tally import Tally
from dbdyno.errors import DynoError
from dbdyno.fleet.hosts import seen
from dbdyno.fleet.session import Session
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from tests.fleet.machines import DYNO, HUB_ADDRESS, Machine, Space, folders_in, machines, started, wait_for
from tests.records.postgresql import PostgreSQL

NAME, PASSWORD, LEASE = "a", "of-a-bench", "3s"
STUDY = """
title  = "Twice the same"
engine = "sqlite"
slice  = "0.25s"
images = 1
blocks = 2
[workload]
name     = "tpcb"
clients  = 1
warmup   = "0.5s"
duration = "2s"
[settings]
"config.synchronous" = "OFF"
[factors]
"config.cache_size" = [-20000, -20001]
"""
CONFIDENCE = 0.95
PATIENCE_S = 180.0


@dataclass
class Bench:
    """A host, the store's server in the hub, and the study's file."""

    hub: Space
    host: Machine
    server: PostgreSQL
    folder: Path

    @property
    def url(self) -> str:
        return f"postgresql://dyno:{PASSWORD}@{HUB_ADDRESS}/postgres"

    def with_worker(self) -> list[Record]:
        self.host.start_worker(self.url, LEASE)
        wait_for("the worker is there", self._is_there, PATIENCE_S)
        self._carry_out(self.hub, folders_in(self.folder / "hub"), "--fleet", NAME)
        found = self._records()
        self.host.kill()
        return found

    def without(self) -> list[Record]:
        self._carry_out(self.host, self.host.variables)
        return self._records()

    def _carry_out(self, where: Space, variables: dict[str, str], *more: str) -> None:
        words = (DYNO, "run", str(self.folder / "study.toml"), "--quiet", *more)
        log = self.folder / "run.log"
        with log.open("wb") as file:
            code = started(
                where, words, {**variables, "DYNO_STORE": self.url}, stdout=file, stderr=file
            ).wait()
        if code != 0:
            sys.exit(f"{' '.join(words)} ended with {code}: {log.read_text()}")

    def _is_there(self) -> bool:
        try:
            with Session(self.server.url) as session:
                return any(one.connected for one in seen(session))
        except DynoError:
            return False

    def _records(self) -> list[Record]:
        with Store(self.server.url) as store:
            return list(store.records(store.run("last").run))


def logs(records: list[Record]) -> tuple[float, float]:
    """Of a run: the mean logs of operations per second, and of CPU seconds of the load per operation."""
    tallies = [one.tally for one in records if one.tally]
    assert len(tallies) == len(records), [one.cause for one in records]
    speeds = [math.log(one.operations / one.duration_s) for one in tallies]
    cpu = [math.log(cpu_s(one) / one.operations) for one in tallies]
    return statistics.fmean(speeds), statistics.fmean(cpu)


def cpu_s(tally: Tally) -> float:
    """CPU time of the clients, and of the engine in their process."""
    return tally.driver_cpu_s.user + tally.driver_cpu_s.system + (tally.engine_cpu_s or 0.0)


def told(name: str, found: list[float]) -> str:
    """A ratio with / without of all pairs, with its interval."""
    mean = statistics.fmean(found)
    half = t_quantile(CONFIDENCE, len(found)) * statistics.stdev(found) / math.sqrt(len(found))
    low, middle, high = (math.exp(mean + reach) for reach in (-half, 0.0, half))
    return f"{name}, with / without a worker: {middle:.4f} ({low:.4f} - {high:.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.pairs < 2:
        parser.error("--pairs: an interval needs two pairs")
    draw, ratios = random.Random(given.seed), list[tuple[float, float]]()
    with (
        tempfile.TemporaryDirectory(prefix="dyno-fleet-") as name,
        machines([NAME], Path(name)) as (hub, [host]),
        PostgreSQL(HUB_ADDRESS, PASSWORD, hub.enters) as server,
    ):
        bench = Bench(hub, host, server, Path(name))
        (bench.folder / "study.toml").write_text(STUDY)
        # What the first run makes and keeps, the others find.
        bench.without()
        for number in range(given.pairs):
            ways = draw.sample((bench.with_worker, bench.without), 2)
            measured = {way: logs(way()) for way in ways}
            (speed, cpu), (speed_without, cpu_without) = measured[bench.with_worker], measured[bench.without]
            ratios.append((speed - speed_without, cpu - cpu_without))
            print(f"pair {number + 1}: {math.exp(ratios[-1][0]):.4f}", file=sys.stderr)
    print(f"{given.pairs} pairs, {CONFIDENCE:.0%} intervals over pairs")
    print(told("operations per s", [speed for speed, _ in ratios]))
    print(told("CPU of the load per operation", [cpu for _, cpu in ratios]))


if __name__ == "__main__":
    main()
