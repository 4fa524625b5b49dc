"""`dyno cleanup`: restores what a Dyno that died left behind."""

from __future__ import annotations

import click

from dbdyno.host.journal import left_by_others, replay_abandoned
from dbdyno.host.once import sweep


@click.command()
def command() -> None:
    """Restore what a Dyno that died left behind: its processes, sockets, files and host settings."""
    lines = replay_abandoned() + [f"unfinished {path}" for path in sweep()]
    for line in lines:
        click.echo(line)
    click.echo(f"{len(lines)} restored" if lines else "nothing was left behind", err=True)
    tell_of_others()


def tell_of_others() -> None:
    """What Dynos of other users left is theirs to restore, and may be felt by every measurement."""
    for user in left_by_others():
        click.echo(
            f"warning: a Dyno of user {user} died and left changes to this host; as {user}: dyno cleanup",
            err=True,
        )
