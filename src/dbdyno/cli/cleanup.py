"""`dyno cleanup`: puts back what a Dyno that died left behind."""

from __future__ import annotations

import click

from dbdyno.journal import replay_abandoned


@click.command()
def command() -> None:
    """Put back what a Dyno that died left behind: its processes, sockets, files and host settings."""
    lines = replay_abandoned()
    for line in lines:
        click.echo(line)
    click.echo(f"{len(lines)} put back" if lines else "nothing was left behind", err=True)
