"""What the tests of a fleet share."""

from __future__ import annotations

from dbdyno.fleet.hosts import HeldHost, Member, register
from dbdyno.fleet.session import Session
from dbdyno.host.fingerprint import Host
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import FleetHost, Run
from tests.fakes import make_run, make_study


def member(name: str, *tags: str) -> Member:
    return Member(
        name=name,
        tags=tags,
        host=Host(name=f"machine-{name}"),
        dyno_version="0.2.0",
        code="c0de",
        offers={},
        calibrations=0,
    )


def speaks(session: Session, name: str, worker: str = "first") -> HeldHost:
    """This session speaks for a host from now on."""
    return register(session, member(name), worker, lambda line: None)


def run_on(*hosts: str, name: str = "first", blocks: int = 8) -> Run:
    fleet = tuple(FleetHost(name=host, host=Host(name=f"machine-{host}")) for host in hosts)
    return make_run(make_study(1, 2, blocks=blocks)).but(fleet=fleet, run=name)


def record_of(trial: int, host: str, fence: int, run: str = "first") -> Record:
    return Record(
        run=run,
        trial=trial,
        block=trial // 2,
        position=trial % 2,
        variant="baseline",
        levels={},
        host=f"machine-{host}",
        fleet_host=host,
        fence=fence,
        started_unix_s=1.5,
        finished_unix_s=2.5,
        outcome=Outcome.MEASURED,
    )
