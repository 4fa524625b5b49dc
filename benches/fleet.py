"""Does a fleet store each trial once, whatever befalls it? Histories of faults, drawn by a seed.

    python -m benches.fleet [--histories N] [--seed N] [--only KIND ...] [--results FILE] [--show]

Three hosts, each with a network, a name, mounts and folders of its own, share one PostgreSQL behind networks
that can be cut. In each history a controller begins a small study of SQLite on them, and one to three faults
strike at drawn moments: a worker is killed, or stopped until its lease is over, a network is cut, the store
is killed and starts again, the controller is killed or interrupted, a second one comes, a host is taken out.
Then a judge (tests/fleet/judge.py) compares what is stored with the plan, with the leases, and with the same
study on one host. All hosts must be restored, and nothing may be left running.

With FILE each history is a line of it as soon as it is over, and those that it holds are not carried out
again. `--show` prints the table of FILE alone. Needs root. A history takes about half a minute on two CPUs.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.errors import DynoError
from dbdyno.fleet.hosts import seen
from dbdyno.fleet.session import Session
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from tests.fleet.judge import faults
from tests.fleet.machines import DYNO, HUB_ADDRESS, Machine, Space, folders_in, machines, started, wait_for
from tests.records.postgresql import PostgreSQL

NAMES = ("a", "b", "c")
LEASE, LEASE_S = "3s", 3.0
PASSWORD = "never-in-a-log"
STUDY_SEED = 7
BLOCKS = (2, 4)
"""Of each host."""
STUDY = """
title  = "Does the page cache of SQLite matter?"
engine = "sqlite"
slice  = "0.1s"
images = 1
[workload]
name     = "tpcb"
clients  = 1
warmup   = "0s"
duration = "0.5s"
[factors]
"config.cache_size" = [-2000, -20000]
"""
STRIKES_S = 6.0
"""Faults come within this time after the run has begun."""
OVER_S = 240.0
"""So long a history may take after its last fault."""

Act = Callable[[], None]


@dataclass
class Bench:
    """The hosts, the store, and the controllers of the history that goes on."""

    hub: Space
    hosts: dict[str, Machine]
    server: PostgreSQL
    folder: Path
    alone: dict[int, Record] = field(default_factory=dict)
    run: str = ""
    controllers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    others: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """As hosts have it."""
        return f"postgresql://dyno:{PASSWORD}@{HUB_ADDRESS}/postgres"

    def control(self, *words: str) -> subprocess.Popen[bytes]:
        """A controller in the hub."""
        variables = {**folders_in(self.folder / "hub"), "DYNO_STORE": self.url}
        with (self.folder / "hub" / "controller.log").open("ab") as log:
            self.controllers.append(
                started(self.hub, (DYNO, "run", *words, "--quiet"), variables, stdout=log, stderr=log)
            )
        return self.controllers[-1]

    def resume(self) -> None:
        self.control("--resume", self.run)

    def call(self, *words: str) -> None:
        """A command in the hub, to its end."""
        variables = {**folders_in(self.folder / "hub"), "DYNO_STORE": self.url}
        started(self.hub, (DYNO, *words), variables, stdout=-3, stderr=-3).wait()

    def start_all(self) -> None:
        for host in self.hosts.values():
            host.connected(True)
            if host.alive:
                assert host.worker is not None
                host.worker.send_signal(signal.SIGCONT)
            else:
                host.start_worker(self.url, LEASE)

    def all_are_there(self) -> bool:
        """Whether no host lacks its worker; those that do get one."""
        self.start_all()
        try:
            with Session(self.server.url) as session:
                return {one.member.name for one in seen(session) if one.connected} == set(self.hosts)
        except DynoError:
            return False


def drawn(bench: Bench, draw: random.Random, only: tuple[str, ...]) -> list[tuple[float, str, Act]]:
    """What befalls a history: moments in seconds after its run began, what happens, and the deed."""
    kinds = only or tuple(KINDS)
    events: list[tuple[float, str, Act]] = []
    for kind in draw.sample(kinds, min(len(kinds), draw.choice((1, 1, 2, 3)))):
        at_s = draw.uniform(0.0, STRIKES_S)
        host = bench.hosts[draw.choice(NAMES)]
        events += [
            (round(at_s + later_s, 2), f"{what} {host.name}" if of_host else what, act)
            for later_s, what, of_host, act in KINDS[kind](bench, host, draw)
        ]
    return sorted(events, key=lambda event: event[0])


Deeds = Iterator[tuple[float, str, bool, Act]]
"""Seconds after the first one, what happens, whether to a host, and the deed."""


def kill(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "kill", True, host.kill
    yield draw.uniform(0.1, 3.0), "start", True, lambda: start(bench, host)


def stop(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    """Longer than a lease or shorter; maybe another worker comes meanwhile."""
    length_s = draw.choice((1.0, 2.0 * LEASE_S, 4.0 * LEASE_S)) * draw.uniform(0.8, 1.2)
    stopped = list[subprocess.Popen[bytes]]()

    def begins() -> None:
        if host.worker is not None and host.alive:
            stopped.append(host.worker)
            host.worker.send_signal(signal.SIGSTOP)

    yield 0.0, "stop", True, begins
    if draw.random() < 0.5:
        yield 0.5 * length_s, "another worker", True, lambda: another(bench, host)
    yield length_s, "continue", True, lambda: go_on(stopped)


def go_on(stopped: list[subprocess.Popen[bytes]]) -> None:
    for one in stopped:
        one.send_signal(signal.SIGCONT)


def split(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "cut", True, lambda: host.connected(False)
    yield draw.choice((1.0, 2.0 * LEASE_S, 4.0 * LEASE_S)), "join", True, lambda: host.connected(True)


def restart(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "restart of the store", False, bench.server.restart


def death(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "death of the controller", False, lambda: bench.controllers[-1].kill()
    yield draw.uniform(0.0, 2.0), "resume", False, bench.resume


def second(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "second controller", False, bench.resume


def interrupt(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "Ctrl-C", False, lambda: bench.controllers[-1].send_signal(signal.SIGINT)
    yield draw.uniform(0.5, 3.0), "resume", False, bench.resume


def remove(bench: Bench, host: Machine, draw: random.Random) -> Deeds:
    yield 0.0, "remove", True, lambda: bench.call("hosts", "remove", host.name)


KINDS: dict[str, Callable[[Bench, Machine, random.Random], Deeds]] = {
    "kill": kill,
    "stop": stop,
    "split": split,
    "restart": restart,
    "death": death,
    "second": second,
    "interrupt": interrupt,
    "remove": remove,
}


def start(bench: Bench, host: Machine) -> None:
    if not host.alive:
        host.start_worker(bench.url, LEASE)


def another(bench: Bench, host: Machine) -> None:
    """A second worker of the host, which takes over where the first has lost its lease."""
    if host.worker is not None:
        bench.others.append(host.worker)
    host.start_worker(bench.url, LEASE)


def history(bench: Bench, number: int, seed: int, only: tuple[str, ...]) -> dict[str, Any]:
    """One run with its faults, and what the judge says."""
    began_s = time.monotonic()
    draw = random.Random(f"{seed} {number}")
    blocks, events = draw.choice(BLOCKS), drawn(bench, draw, only)
    wait_for("all workers are there", bench.all_are_there, 180.0)
    bench.controllers.clear()
    bench.run = begun(bench, blocks)
    since_s = time.monotonic()
    for at_s, _, act in events:
        time.sleep(max(0.0, since_s + at_s - time.monotonic()))
        act()
    found = ended(bench)
    return {
        "number": number,
        "seed": seed,
        "blocks": blocks,
        "events": [f"{at_s:.2f} s: {what}" for at_s, what, _ in events],
        "seconds": round(time.monotonic() - began_s, 1),
        **found,
    }


def begun(bench: Bench, blocks: int) -> str:
    """A controller begins the study on all hosts; returns its run when they have their parts."""
    path = bench.folder / "study.toml"
    path.write_text(STUDY)
    words = ("--fleet", ",".join(NAMES), "--seed", str(STUDY_SEED), "--blocks", str(blocks))
    with Session(bench.server.url) as session:
        known = {run for (run,) in session.execute("SELECT run FROM dyno_runs")}
        controller = bench.control(str(path), *words)
        while True:
            rows = session.execute("SELECT run FROM dyno_parts WHERE state = 'given'")
            if fresh := {run for (run,) in rows} - known:
                return str(next(iter(fresh)))
            assert controller.poll() is None, "the controller ended before the run began; see its log"
            time.sleep(0.05)


def ended(bench: Bench) -> dict[str, Any]:
    """Waits until the run is over, bringing back whoever is gone, and lets the judge look at it."""
    until_s = time.monotonic() + OVER_S
    while not over(bench):
        if time.monotonic() > until_s:
            return {"faults": [f"the run was not over {OVER_S:.0f} s after its last fault"], "late": 0}
        bench.start_all()
        if all(one.poll() is not None for one in bench.controllers):
            bench.resume()
        time.sleep(0.5)
    for other in bench.others:
        # One that did not lose its host has kept the other waiting.
        other.kill()
        other.wait()
    bench.others.clear()
    wait_for("all workers are there", bench.all_are_there, 180.0)
    for one in bench.controllers:
        one.wait(90.0)
    with Store(bench.server.url) as store, Session(bench.server.url) as session:
        run = store.run(bench.run)
        found = faults(store, session, run, list(bench.alone.values()))
        ((late,),) = session.execute("SELECT count(*) FROM dyno_late WHERE run = %s", bench.run)
        leases = session.execute("SELECT count(*) FROM dyno_leases WHERE run = %s", bench.run)[0][0]
        records = len(store.records(bench.run))
    found += [
        f"host {host.name} is not restored: {host.journals}" for host in bench.hosts.values() if host.journals
    ]
    for host in bench.hosts.values():
        left = set(host.process_ids()) - {host.worker.pid if host.worker else 0}
        found += [f"host {host.name} still runs {named(one)}" for one in left if named(one)]
    found += [
        f"{path} holds the password" for path in bench.folder.rglob("*.log") if PASSWORD in path.read_text()
    ]
    return {"faults": found, "late": late, "leases": leases, "records": records}


def named(process_id: int) -> str:
    """A process's command; empty for one that has ended since."""
    try:
        return Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def over(bench: Bench) -> bool:
    try:
        with Store(bench.server.url) as store:
            return store.summary(store.run(bench.run)).finished
    except DynoError:
        return False


@contextmanager
def bench_in(folder: Path, blocks_most: int = max(BLOCKS)) -> Iterator[Bench]:
    """The hosts and their store, with what one host makes of the study by itself. Histories have so many
    blocks of each host at most."""
    with machines(NAMES, folder) as (hub, hosts), PostgreSQL(HUB_ADDRESS, PASSWORD, hub.enters) as server:
        bench = Bench(hub, {host.name: host for host in hosts}, server, folder)
        alone = folders_in(folder / "hub")
        path, store = folder / "alone.toml", f"sqlite:///{folder}/alone.sqlite"
        path.write_text(STUDY)
        words = ("run", str(path), "--seed", str(STUDY_SEED), "--quiet", "--store", store)
        blocks = str(blocks_most * len(NAMES))
        with (folder / "hub" / "alone.log").open("wb") as log:
            ran = started(hub, (DYNO, *words, "--blocks", blocks), alone, stdout=log, stderr=log).wait()
        assert ran == 0, f"the study alone ended with {ran}: {(folder / 'hub' / 'alone.log').read_text()}"
        with Store(store) as opened:
            bench.alone = {one.trial: one for one in opened.records(opened.run("last").run)}
        with Store(server.url):
            pass
        try:
            yield bench
        finally:
            for host in bench.hosts.values():
                host.connected(True)


def shown(lines: list[dict[str, Any]]) -> None:
    """The table of all histories."""
    wrong = [line for line in lines if line["faults"]]
    kinds = Counter(event.split(": ")[1].split()[0] for line in lines for event in line["events"])
    print(f"{len(lines)} histories, {len(wrong)} with faults")
    print(f"events: {', '.join(f'{name} {count}' for name, count in kinds.most_common())}")
    records, late = (sum(line.get(name, 0) for line in lines) for name in ("records", "late"))
    print(f"{records} records kept, {late} late ones refused")
    for line in wrong:
        print(json.dumps(line, indent=1))


def main() -> None:
    for ending in (signal.SIGINT, signal.SIGTERM):
        # In the background of a shell Ctrl-C is ignored, and namespaces must not be left.
        signal.signal(ending, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=tuple(KINDS), default=[])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    lines = (
        [json.loads(line) for line in given.results.read_text().splitlines()]
        if given.results and given.results.exists()
        else []
    )
    if given.show:
        shown(lines)
        return
    done = {(line["seed"], line["number"]) for line in lines}
    with tempfile.TemporaryDirectory(prefix="dyno-fleet-") as folder, bench_in(Path(folder)) as bench:
        for number in range(given.histories):
            if (given.seed, number) in done:
                continue
            line = history(bench, number, given.seed, tuple(given.only))
            lines.append(line)
            if given.results:
                with given.results.open("a") as results:
                    results.write(json.dumps(line) + "\n")
            print(json.dumps(line), file=sys.stderr)
    shown(lines)


if __name__ == "__main__":
    main()
