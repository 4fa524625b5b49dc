"""Where pages are served: on loopback alone, behind a token."""

from __future__ import annotations

import errno
import secrets
import socket
from dataclasses import dataclass

from dbdyno.errors import UserError

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 24
TOKEN = "token"
"""The name of what the address holds that is printed."""


@dataclass(frozen=True)
class Address:
    """A port of loopback, and the token that its pages ask for."""

    port: int
    token: str

    @property
    def hosts(self) -> frozenset[str]:
        """What a browser may say it asks: any other name leads here by a trick (DNS rebinding)."""
        return frozenset(f"{host}:{self.port}" for host in (LOOPBACK, "localhost"))

    @property
    def cookie(self) -> str:
        """Its name. The port is in it, because cookies do not tell ports from each other."""
        return f"dyno-{self.port}"

    def url(self, path: str = "/") -> str:
        """What is printed for the user."""
        return f"http://{LOOPBACK}:{self.port}{path}?{TOKEN}={self.token}"


def listening(port: int = 0) -> tuple[socket.socket, Address]:
    """A socket that listens on loopback, on a free port where it is 0. Raises UserError for a port that is in
    use or may not be used."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # What is left of connections that a server before this one closed must not keep its port busy.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise UserError(
            f"port {port} of {LOOPBACK} {why}", "name another port, or none: a free one is then taken"
        ) from None
    return listener, Address(listener.getsockname()[1], secrets.token_urlsafe(TOKEN_BYTES))
