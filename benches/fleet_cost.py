"""What does a host of a fleet cost the store, and does that grow with the number of hosts?

    python -m benches.fleet_cost [--hosts N ...] [--pairs N] [--connected N] [--sample N]

One process speaks for all hosts: each has a session of its own and says what a worker says, by the worker's
own functions, for some pairs of blocks. Only the trials are left out; their records are real ones, two a
block. The store is a PostgreSQL of the bench's own behind TLS, in a network of its own, whose loopback counts
the bytes of both directions with all headers.

A row says what one host costs for one pair of blocks: statements, KiB, the server's CPU time and all time;
and how long the controller needs for a look at which nothing is new. The run itself is not counted, which a
host reads once. There are two rows for a number of hosts, because the server wakes its processes of all who
sleep at each word: the other hosts are at work, or sleep. With `--connected`, only so many have a session,
and the store knows the others by their rows; with `--sample`, only so many measure. A row's last figure is
the memory of the server for one session: what its process has for itself, and its share of the rest (PSS).
Needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import psycopg

from benches.fleet import STUDY
from dbdyno.cli.fleet import FollowedRun
from dbdyno.cli.measuring import records_of_host
from dbdyno.fleet import hosts as leases
from dbdyno.fleet import parts
from dbdyno.fleet.hosts import HeldHost, register, require_speaker
from dbdyno.fleet.session import Session, of_run
from dbdyno.host.namespaces import unshare
from dbdyno.plan import restarts
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.record import Record
from dbdyno.records.run import BLOCKS_IN_PAIR, FleetHost, Run
from dbdyno.records.store import Store
from dbdyno.run import Unwatched
from dbdyno.study import Arrangement
from dbdyno.study.trials import Trial
from tests.analyse.factory import a_run, a_study
from tests.fleet.cases import member
from tests.records.postgresql import PostgreSQL

CLONE_NEWNET = 0x40000000
ADDRESS, PASSWORD = "127.0.0.1", "of-a-bench"
GOLDEN = Path(__file__).parents[1] / "tests" / "records" / "golden" / "format-2.json"
LEASE_S = 600.0


@dataclass
class Spent:
    """So far: statements of this process, bytes on the loopback, and the server's CPU time."""

    statements: int
    network_bytes: int
    server_s: float


class Meter:
    """Counts what this process says to a server of PostgreSQL."""

    def __init__(self, server: psutil.Process) -> None:
        self._server, self._statements = server, 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        execute: Any = psycopg.Connection.execute

        def counted(*given: Any, **named: Any) -> Any:
            self._statements += 1
            return execute(*given, **named)

        with mock.patch.object(psycopg.Connection, "execute", counted):
            yield

    def spent(self) -> Spent:
        # /sys shows the devices of the network in which it was mounted.
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        received = next(line.split()[1] for line in lines if line.strip().startswith("lo:"))
        own = self._server.cpu_times()
        server_s = own.user + own.system + own.children_user + own.children_system
        for child in self._server.children():
            # One that has ended since is not counted twice, and next time among those that have.
            with suppress(psutil.NoSuchProcess):
                times = child.cpu_times()
                server_s += times.user + times.system
        return Spent(self._statements, int(received), server_s)


@dataclass
class Host:
    """A host that is only played."""

    session: Session
    place: HeldHost


def run_on(name: str, hosts: int, pairs: int) -> Run:
    """A run of two variants on so many hosts, with so many pairs of blocks on each."""
    names = (f"host-{number}" for number in range(hosts))
    run = a_run(a_study())
    found = tuple(FleetHost(name=name, host=run.host) for name in names)
    return run.but(
        study_text=STUDY,
        arrangement=Arrangement.SIDE_BY_SIDE,
        run=name,
        fleet=found,
        blocks=BLOCKS_IN_PAIR * pairs * hosts,
        mirrored=True,
    )


def pair(host: Host, url: str, run: Run, golden: Record, around: AbstractContextManager[None]) -> None:
    """All that a worker says for a pair of blocks, in its order; see `cli/worker.py`."""
    session, place = host.session, host.place
    session.wait(0.0)
    require_speaker(session, place)
    parts.asked_of(session, place.name)
    name = parts.next_run(session, place.name)
    assert name == run.run
    with Store(url) as store:
        study = study_of(run)
        records = records_of_host(store, run, place.name)
        assert restarts.ask_of_host(place.name, study, run, records)
        with around, leases.Lease(session, place, name, LEASE_S) as lease:
            records = records_of_host(store, run, place.name)
            for _ in range(BLOCKS_IN_PAIR):
                parts.is_given(session, name, place.name)
                for trial in restarts.ask_of_host(place.name, study, run, records):
                    records.append(kept(store, run, trial, place.name, lease.fence, golden))
                    session.tell(of_run(name))
                    parts.is_given(session, name, place.name)


def kept(store: Store, run: Run, trial: Trial, host: str, fence: int, golden: Record) -> Record:
    """A trial's record, kept as a trial's is: before the host is restored, and after it."""
    record = golden.but(
        run=run.run,
        trial=trial.index,
        block=trial.block,
        position=trial.position,
        variant=trial.variant.name,
        levels=trial.variant.levels,
        fleet_host=host,
        fence=fence,
    )
    store.add_record(record)
    store.add_record(record)
    return record


def known_by_row(session: Session, run: Run, names: Sequence[str]) -> None:
    """Hosts that the store knows though no session speaks for them, as where a launcher has them back."""
    rows = [(name, member(name).model_dump_json()) for name in names]
    with session.transaction():
        statement = "INSERT INTO dyno_hosts (host, worker, signed_at, document) VALUES (%s, '', now(), %s)"
        for row in rows:
            session.execute(statement, *row)
        # A host has had a lease for each of its pairs.
        session.execute(
            "INSERT INTO dyno_leases (number, run, released, during) SELECT number, %s, TRUE,"
            " tstzrange(now() - interval '2 hours', now() - interval '1 hour') FROM dyno_hosts",
            run.run,
        )


def session_mib(process: psutil.Process) -> float:
    """What a session takes of the server's memory, in MiB."""
    taken = list[float]()
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            taken.append(child.memory_full_info().pss / 2**20)
    return statistics.median(taken)


def measured(hosts: int, pairs: int, process: psutil.Process, asleep: bool, given: argparse.Namespace) -> str:
    """A row of the table. The others are `asleep`, or at work like the one that speaks."""
    url = f"postgresql://dyno:{PASSWORD}@{ADDRESS}/postgres"
    longest = max(json.loads(GOLDEN.read_bytes())["records"], key=lambda one: len(json.dumps(one)))
    golden = Record.model_validate(longest)
    others = "asleep" if asleep else "at work"
    run, meter = run_on(f"{hosts} {others}", hosts, pairs), Meter(process)
    with ExitStack() as stack:
        store = stack.enter_context(Store(url))
        controller = stack.enter_context(Session(url))
        controller.listen(of_run(run.run))
        played = list[Host]()
        connected = min(hosts, given.connected or hosts)
        known_by_row(controller, run, [one.name for one in run.fleet[connected:]])
        for one in run.fleet[:connected]:
            session = stack.enter_context(Session(url))
            played.append(Host(session, register(session, member(one.name), one.name, lambda line: None)))
        for host in played:
            if not asleep:
                host.session.execute("UNLISTEN *")
        store.add_run(run)
        parts.give(controller, run)
        speak = played[: given.sample]
        before, began_s = meter.spent(), time.monotonic()
        with meter.counting():
            for _ in range(pairs):
                for host in speak:
                    pair(host, url, run, golden, host.session.deaf() if asleep else nullcontext())
        after, took_s = meter.spent(), time.monotonic() - began_s
        following = FollowedRun(store, controller, run)
        look_s = time.monotonic()
        following.look(Unwatched())
        look_s = time.monotonic() - look_s
        memory_mib = session_mib(process)
        for table in ("dyno_hosts", "dyno_parts", "dyno_leases"):
            controller.execute(f"DELETE FROM {table}")
    each = len(speak) * pairs
    statements = (after.statements - before.statements) / each
    sent_kib = (after.network_bytes - before.network_bytes) / each / 1024
    server_ms, wall_ms = 1e3 * (after.server_s - before.server_s) / each, 1e3 * took_s / each
    figures = f"{statements:10.1f}  {sent_kib:8.0f}  {server_ms:9.1f}  {wall_ms:7.1f}"
    return f"{hosts:5}  {others:7}  {figures}  {1e3 * look_s:7.0f}  {memory_mib:11.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--connected", type=int)
    parser.add_argument("--sample", type=int)
    given = parser.parse_args()
    unshare(CLONE_NEWNET)
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    settings = f"max_connections = {min(max(given.hosts), given.connected or max(given.hosts)) + 50}\n"
    with PostgreSQL(ADDRESS, PASSWORD, settings=settings) as server:
        print("hosts  others   statements  KiB both  server ms  wall ms  look ms  MiB session")
        for hosts in given.hosts:
            with psycopg.connect(server.url) as session:
                ((process_id,),) = session.execute("SELECT pg_backend_pid()").fetchall()
                process = psutil.Process(psutil.Process(process_id).ppid())
            for asleep in (False, True)[: 1 if hosts == 1 else 2]:
                print(measured(hosts, given.pairs, process, asleep, given), flush=True)


if __name__ == "__main__":
    main()
