"""The server of the pages: it sleeps until a browser asks, a page was drawn, or it is to end."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from dbdyno.interrupts import SIGNALS
from dbdyno.serve.address import Address
from dbdyno.serve.application import StoreApplication
from dbdyno.serve.pages import StorePages

GRACE_S = 2
"""So long open connections have at the end."""
HEAD_S = 10.0
"""So long a connection may stay that has not sent the token."""
STRANGERS_MOST, STRANGERS_PER_ADDRESS = 64, 32
"""So many of them may be open at once, far below any limit of descriptors. The oldest goes first, so that
whoever sends the token at once always comes in."""
BACKLOG = 16
"""So many connections are accepted at once. At the limit of descriptors Python tries as often each second."""
SERVED_NO_MORE = "Dyno no longer serves this page. It stays as it was drawn last."

Begin = Callable[[StoreApplication, asyncio.Event], None]
"""Is called in the event loop when pages can be asked for, with what ends the server once it is set."""


class Strangers:
    """The connections that have not sent the token, the oldest first. All of it happens in the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int] | None, Connection] = {}

    def came(self, connection: Connection) -> None:
        """Makes room for one more."""
        address = connection.client[0] if connection.client else ""
        same = [one for client, one in self._waiting.items() if client and client[0] == address]
        if len(same) >= STRANGERS_PER_ADDRESS:
            same[0].turn_away()
        elif len(self._waiting) >= STRANGERS_MOST:
            next(iter(self._waiting.values())).turn_away()
        self._waiting[connection.client] = connection

    def left(self, client: tuple[str, int] | None) -> None:
        """Is gone, or has sent the token."""
        connection = self._waiting.pop(client, None)
        if connection is not None:
            connection.deadline.cancel()

    def admit(self, scope: Scope) -> None:
        """Whose request had the token."""
        client = scope.get("client")
        self.left(tuple(client) if client else None)


class Connection(H11Protocol):
    """uvicorn's own waits for ever for the rest of a request, and for any number of them."""

    strangers: Strangers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.deadline = self.loop.call_later(HEAD_S, self.turn_away)
        self.strangers.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.strangers.left(self.client)
        super().connection_lost(exc)

    def turn_away(self) -> None:
        """Ends the connection, and what it still wanted to send."""
        self.strangers.left(self.client)
        self.transport.abort()


class Still(uvicorn.Server):
    """uvicorn's own loop wakes ten times a second, which a measurement beside it would feel."""

    def __init__(self, config: uvicorn.Config, application: StoreApplication, begin: Begin) -> None:
        super().__init__(config)
        self._application = application
        self._begin = begin

    async def main_loop(self) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, ended.set)
        loop.set_exception_handler(_told)
        self._application.begin()
        self._begin(self._application, ended)
        await ended.wait()
        self._application.following.end(SERVED_NO_MORE)


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Python tells each connection that it could not accept for want of descriptors."""
    error = context.get("exception")
    if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
        loop.default_exception_handler(context)


def serve(listener: socket.socket, address: Address, store_url: str, begin: Begin, pinned: str = "") -> None:
    """Serves the pages of a store until a signal comes, or `begin` ends it. The page at the `pinned` path is
    always drawn."""
    application = StoreApplication(StorePages(store_url), address, pinned)
    strangers = Strangers()
    application.guarded.admits = strangers.admit
    config = uvicorn.Config(
        application.guarded,
        http=type("Connection", (Connection,), {"strangers": strangers}),
        backlog=BACKLOG,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    Still(config, application, begin).run(sockets=[listener])
