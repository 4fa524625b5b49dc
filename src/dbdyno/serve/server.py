"""The server of the pages: it sleeps until a browser asks, a page was drawn, or it is to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn

from dbdyno.interrupts import SIGNALS
from dbdyno.serve.address import Address
from dbdyno.serve.application import Application
from dbdyno.serve.pages import Pages

GRACE_S = 2
"""So long open connections have at the end."""
SERVED_NO_MORE = "Dyno no longer serves this page. It stays as it was drawn last."

Begin = Callable[[Application, asyncio.Event], None]
"""Is called in the event loop when pages can be asked for, with what ends the server once it is set."""


class Still(uvicorn.Server):
    """uvicorn's own loop wakes ten times a second, which a measurement beside it would feel."""

    def __init__(self, config: uvicorn.Config, application: Application, begin: Begin) -> None:
        super().__init__(config)
        self._application = application
        self._begin = begin

    async def main_loop(self) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, ended.set)
        self._application.begin()
        self._begin(self._application, ended)
        await ended.wait()
        self._application.following.end(SERVED_NO_MORE)


def serve(listener: socket.socket, address: Address, store_url: str, begin: Begin, pinned: str = "") -> None:
    """Serves the pages of a store until a signal comes, or `begin` ends it. The page at the `pinned` path is
    always drawn."""
    application = Application(Pages(store_url), address, pinned)
    config = uvicorn.Config(
        application.guarded,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    Still(config, application, begin).run(sockets=[listener])
