"""`dyno engines`: what is here, what can be obtained, and fetching it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.patience import patient
from dbdyno.cli.terminal import terminal
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.machine import packages
from dbdyno.machine.kinds import machine_kind
from dbdyno.obtain import brought
from dbdyno.obtain.server import PackagedServer
from dbdyno.prepare_run.study_here import fetched_for, study_at
from dbdyno.report.words.safe import json_text
from dbdyno.study import excludes


def list_(as_json: bool) -> None:
    guests = [engine.guest.RECIPE for engine in registry.ENGINES.values() if engine.guest]
    offers = [*registry.offers(), *(offer for guest in guests for offer in packages.offers(guest))]
    if as_json:
        click.echo(json_text([asdict(offer) for offer in offers]))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("engine", "version", "here", "where, or how to get it"):
        table.add_column(heading, overflow="fold")
    for offer in offers:
        where = offer.source if offer.present or not offer.command else f"dyno engines fetch {offer.command}"
        table.add_row(offer.engine, offer.version, "yes" if offer.present else "no", Text(where))
    terminal().print(table)


def add(file: Path) -> None:
    if not brought.is_brought(file):
        raise UserError(
            f"{file} is no tarball, and no folder with an {brought.LAYOUT} file",
            f"the names of tarballs end in {', '.join(brought.ENDINGS)}",
        )
    with patient() as patience:
        patience.tell(f"unpacking {file.name}")
        found = brought.unpacked(file)
    refused = []
    for engine in registry.ENGINES.values():
        if not isinstance(engine.obtaining, PackagedServer):
            continue
        try:
            installation = engine.obtaining.of_brought(found, str(file.absolute()))
        except DynoError as error:
            refused.append(error.message)
            continue
        brought.take_up(file, engine.name)
        click.echo(f"{installation.engine} {installation.version}: {installation.origin}")
        return
    raise UserError(f"{file} holds no server that runs here: {'; '.join(refused)}", "bring another file")


def fetch(
    reference: str | None, mirror: str, study: Path | None, platform: str | None, machine: bool
) -> None:
    if study is not None:
        excludes.require(study=study, platform=platform, machine=machine)
        with patient() as patience:
            installations = fetched_for(study_at(study), mirror, patience.tell)
        for one in installations:
            click.echo(f"{one.engine} {one.version}: {one.origin}")
        if not installations:
            click.echo("all that the study needs is here")
        return
    if reference is None:
        raise UserError("no engine was named", "dyno engines fetch mariadb@11.8, or --study STUDY")
    name, _, version = reference.partition("@")
    engine = registry.engine(name)
    if machine and platform is None:
        raise UserError("--machine is of an architecture", "give --platform ppc64el")
    with patient() as patience:
        if machine and platform is not None:
            recipe = registry.guest(engine).RECIPE
            copy = packages.fetch(machine_kind(platform), recipe, version, mirror, patience.tell).copy
            click.echo(f"a machine of {platform} with {engine.name} {copy.version}: {copy.origin}")
            return
        if platform is None:
            installation = engine.obtaining.fetch(version, mirror, patience.tell)
        else:
            installation = registry.platforms(engine).fetch(version, platform, mirror, patience.tell)
    click.echo(f"{installation.engine} {installation.version}: {installation.origin}")
