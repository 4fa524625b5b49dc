"""Where pages are served: on loopback alone, behind a token."""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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


def token_in(file: Path) -> str:
    """The token that a file of the user's alone holds, which is made where there is none. Raises UserError
    where it cannot be read or made, where others may read it, and where what it holds is too short."""
    try:
        with suppress(FileExistsError), open(file, "x", opener=_for_owner) as made:
            made.write(f"{secrets.token_urlsafe(TOKEN_BYTES)}\n")
        token = file.read_text("ascii").strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot hold a token: {error}", "name another file") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UserError(f"others may read {file}, which holds a token", f"chmod 600 {file}")
    if not re.fullmatch(rf"[\w.~-]{{{TOKEN_BYTES},}}", token, re.ASCII):
        raise UserError(
            f"{file} holds no token: at least {TOKEN_BYTES} letters, digits or .~_-",
            "name a file that does not exist: one is then made",
        )
    return token


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def listening(port: int = 0, token: str = "") -> tuple[socket.socket, Address]:
    """A socket that listens on loopback, on a free port where it is 0, and a token of its own where none is
    given. Raises UserError for a port that is in use or may not be used."""
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
    return listener, Address(listener.getsockname()[1], token or secrets.token_urlsafe(TOKEN_BYTES))
