"""`dyno register`: writes a study down before the first trial of it."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.terminal import tell
from dbdyno.errors import DynoError, UserError
from dbdyno.kinds.comparison import SEQUENTIAL_BLOCKS
from dbdyno.prepare_run.begun import registration_of
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.chain import CHANGED, Entry, RegisteredPlan, Registration, broken_at
from dbdyno.records.place import store_url
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words import safe
from dbdyno.report.words.numbers import moment_text, plural, seconds_text, share_text


def main(study: Path | None, blocks: int | None, until: str | None, as_json: bool, store: str | None) -> None:
    if study is None:
        if blocks is not None or until is not None:
            raise UserError("no study was named to register", "dyno register STUDY")
        with Store(store_url(store)) as opened:
            _list(opened, as_json)
        return
    read = study_at(study, blocks or (SEQUENTIAL_BLOCKS if until else None))
    with writable_store(store_url(store)) as opened:
        content = registration_of(read, until is not None, tell)
        entry = opened.append(content)
        place = opened.place
    if as_json:
        click.echo(safe.json_text(entry))
        return
    click.echo(entry.digest)
    click.echo(f"{safe.clean(read.title)}: registered as entry {entry.number} of {place}", err=True)
    click.echo(f"  expected: {plan_text(content.plan)}", err=True)
    for file in content.files:
        click.echo(f"  {file.kind} {safe.clean(file.path)}: sha256 {file.sha256}", err=True)
    click.echo("  commit the digest above, or send it to somebody, before the run begins", err=True)


def plan_text(plan: RegisteredPlan) -> str:
    """How a study will be analysed, in one line."""
    ends = "ends when its verdicts stand, at most " if plan.sequential else ""
    guards = f", guards {'; '.join(plan.guards)}" if plan.guards else ""
    return safe.clean(
        f"{plan.design}, {ends}{plural(plan.blocks, 'block')} of {seconds_text(plan.duration_s)} measured, "
        f"response {plan.response}, margin {share_text(plan.margin)}, "
        f"confidence {share_text(plan.confidence)}{guards}"
    )


def _list(store: Store, as_json: bool) -> None:
    """The registrations, the first one first. Raises DynoError for a chain that does not hold."""
    entries = store.chain()
    if broken := broken_at(entries):
        raise DynoError(f"the entries of {store.place} do not follow from each other: {broken}", CHANGED)
    found = [entry for entry in entries if isinstance(entry.told, Registration)]
    if as_json:
        click.echo(safe.json_text(found))
        return
    for entry in found:
        click.echo(_line(entry))
    registered = plural(len(found), "registration")
    held = f"each entry up to {len(entries)} follows from the one before"
    click.echo(f"{registered} in {store.place}; {held}", err=True)


def _line(entry: Entry) -> str:
    told = entry.told
    assert isinstance(told, Registration)
    when = moment_text(told.registered_unix_s)
    return f"{entry.number:>5}  {entry.digest[:12]}  {when}  {safe.clean(told.title)}"
