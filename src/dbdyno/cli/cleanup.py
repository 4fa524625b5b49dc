"""`dyno cleanup`: restores what a Dyno that died left behind."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import click

from dbdyno.cli.options import RunningServerUrl
from dbdyno.host.cache import sweep
from dbdyno.host.journal import forget_abandoned, left_by_others, replay_abandoned, waiting_servers
from dbdyno.passwords import without_passwords


@click.command()
@click.option(
    "--server",
    type=RunningServerUrl(),
    help="Put back what any Dyno left on the server at this URL, by what it noted there. From any machine.",
)
@click.option(
    "--forget",
    type=RunningServerUrl(),
    help="Give up what is to be put back on the server at this URL, because that server is gone for good.",
)
def command(server: str | None, forget: str | None) -> None:
    """Restore what a Dyno that died left behind: its processes, sockets, files and host settings, and the
    settings of servers that ran already."""
    given_up = _given_up(forget) if forget is not None else []
    for line in given_up:
        click.echo(f"given up: {line}")
    lines = _noted_on(server) if server is not None else []
    # Whoever types this allows it.
    lines += replay_abandoned(lambda _: True) + [f"unfinished {path}" for path in sweep()]
    for line in lines:
        click.echo(line)
    click.echo(f"{len(lines)} restored" if lines else "nothing was left behind", err=True)
    tell_of_others()


def _noted_on(url: str) -> list[str]:
    # Here, because most cleanups reach no server.
    from dbdyno.engines.put_back import put_back_noted

    return put_back_noted(url)


def _given_up(url: str) -> list[str]:
    from dbdyno.engines.put_back import is_on

    return forget_abandoned(partial(is_on, url=url))


def put_back_on(servers: Collection[str]) -> None:
    """Puts back what Dynos that died left on these servers, and no others."""
    if not servers:
        return
    from dbdyno.engines.put_back import is_on

    for line in replay_abandoned(lambda entry: any(is_on(entry, url) for url in servers)):
        click.echo(f"restored after a Dyno that died: {line}", err=True)


def tell_of_servers() -> None:
    """What Dynos that died left on servers waits for the user's word."""
    for url, changes in waiting_servers().items():
        click.echo(
            f"warning: a Dyno died and left {len(changes)} changes on {without_passwords(url)}; "
            "to put them back: dyno cleanup",
            err=True,
        )


def tell_of_others() -> None:
    """What Dynos of other users left is theirs to restore, and may be felt by every measurement."""
    for user in left_by_others():
        click.echo(
            f"warning: a Dyno of user {user} died and left changes to this host; as {user}: dyno cleanup",
            err=True,
        )
