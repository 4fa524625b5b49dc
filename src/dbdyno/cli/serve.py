"""`dyno serve`: the pages of a store, for a browser on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.cli.options import ANY_PORT, PORT_MOST, store_option
from dbdyno.records.place import store_url
from dbdyno.records.store import Store

if TYPE_CHECKING:
    # A server and its loop take long to import.
    import asyncio

    from dbdyno.serve.application import StoreApplication


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MOST),
    default=ANY_PORT,
    help="Listen on this one. Default: a free port.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take the token from this file, or make it there, so that a program can be given it. Default: "
    "another token each time.",
)
@store_option
def command(port: int, token_file: Path | None, store: str | None) -> None:
    """Serve pages on this machine until Ctrl-C: all runs, each report, trends, the museum, and a run that is
    under way.

    Only this machine can open them, and only with the address that is printed. While a block is measured
    here, nothing is drawn: you see what was drawn before it.
    """
    from dbdyno.serve.address import listening, token_in

    listener, address = listening(port, token_in(token_file) if token_file else "")
    url = store_url(store)
    with Store(url) as opened:
        place = opened.place
    from dbdyno.serve.server import serve

    def begun(_application: StoreApplication, _ended: asyncio.Event) -> None:
        click.echo(address.url())
        click.echo(f"pages of {place}; open the address in a browser, Ctrl-C ends", err=True)

    serve(listener, address, url, begun)
