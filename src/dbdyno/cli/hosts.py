"""`dyno fleet hosts`: the hosts of a fleet, what they are, what they do, and how fine they measure."""

from __future__ import annotations

import time
from collections.abc import Collection

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.patience import waiting
from dbdyno.cli.stored_builds import stored_builds, stored_text
from dbdyno.cli.terminal import terminal
from dbdyno.errors import DynoError
from dbdyno.fleet import kept_builds
from dbdyno.fleet.hosts import Member, SeenHost, remove, seen
from dbdyno.fleet.session import Session, require_server
from dbdyno.frozen import Frozen
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words.numbers import moment_text, plural, rough_share_text
from dbdyno.report.words.safe import json_text


class HostRow(Frozen):
    """A host as `--json` lists it. `state` is idle, measures, silent, away, or builds, which it does where it
    makes a build or asks one. One is away whose launcher has it back. `run` is what that is for, until
    `until_unix_s` at most unless the lease is renewed.
    `floor` is the share by which two equal variants differed on it in `floor_run`, its latest run that is
    over; None where there is none."""

    member: Member
    state: str
    run: str
    until_unix_s: float
    signed_unix_s: float
    floor: float | None
    floor_run: str


def list_(as_json: bool, store: str | None) -> None:
    url = store_url(store)
    require_server(url)
    with Store(url) as opened, Session(url) as session, waiting("reading the runs of each host"):
        known = list(seen(session))
        floors = _floors(opened, [one.member.name for one in known])
        runs = {one.run for one in known if one.run}
        at_work = {maker.host for run in runs for maker in kept_builds.makers_for(session, run)}
        rows = [
            _row(one, one.member.name in at_work, *floors.get(one.member.name, (None, ""))) for one in known
        ]
        builds = stored_builds(session)
        place = session.place
    if as_json:
        click.echo(json_text(rows))
        return
    if not rows:
        click.echo(f"there is no host yet in the fleet of {place}; on a host: dyno fleet worker", err=True)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("host", "tags", "CPU", "kernel", "Dyno", "state", "noise floor", "calibrations"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, _cells(row)))
    terminal().print(table)
    if builds:
        terminal().print(Text(stored_text(builds)))


def take_out(name: str, store: str | None) -> None:
    url = store_url(store)
    require_server(url)
    with writable_store(url), Session(url) as session:
        runs = remove(session, name)
    click.echo(f"{name} is taken out; its worker ends by itself", err=True)
    for run in runs:
        click.echo(f"run {run} goes on without what {name} had not measured", err=True)


def _row(one: SeenHost, builds: bool, floor: float | None, run: str) -> HostRow:
    state = "builds" if builds else "measures" if one.run else "idle"
    return HostRow(
        member=one.member,
        state=state if one.connected else "away" if one.member.launcher else "silent",
        run=one.run,
        until_unix_s=one.until_unix_s,
        signed_unix_s=time.time() if one.connected else one.signed_unix_s,
        floor=floor,
        floor_run=run,
    )


def _floors(store: Store, names: Collection[str]) -> dict[str, tuple[float, str]]:
    """How fine each host measured in its latest run that is over and tells it, and that run. A run is read
    once for all of its hosts."""
    found: dict[str, tuple[float, str]] = {}
    for summary in store.runs():
        lacking = {host.name for host in summary.run.fleet if host.name in names} - found.keys()
        if summary.finished and lacking:
            told = _floors_in(store, summary.run)
            found |= {name: (told[name], summary.run.run) for name in lacking if name in told}
    return found


def _floors_in(store: Store, run: Run) -> dict[str, float]:
    """From each host's own blocks."""
    records = store.readable_records(run.run)
    try:
        found = analysed(study_of(run), run, records)
    except DynoError:
        return {}
    # Where one host measured alone, the run's floor is its own.
    alone = {record.fleet_host: found.floor for record in records}
    floors = {one.name: one.floor for one in found.hosts.hosts} if found.hosts is not None else alone
    return {name: floor.difference for name, floor in floors.items() if floor is not None}


def _cells(row: HostRow) -> tuple[str, ...]:
    member, cpu = row.member, row.member.host.cpu
    state = {"measures": f"measures {row.run}", "builds": f"builds for {row.run}"}.get(row.state, row.state)
    return (
        member.name,
        ", ".join(member.tags),
        f"{cpu.usable_cores or '?'} x {cpu.model or 'not known'}",
        member.host.kernel or "",
        member.dyno_version,
        f"{state} since {moment_text(row.signed_unix_s)}" if row.state in ("silent", "away") else state,
        "" if row.floor is None else f"{rough_share_text(row.floor)} ({row.floor_run})",
        plural(member.calibrations, "calibration") if member.calibrations else "none",
    )
