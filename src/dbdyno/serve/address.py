"""Where pages are served: on loopback alone, behind a token.

Who may see a page is whoever was given the address with its token, on this machine.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbdyno.errors import UserError

READING = ("GET", "HEAD")
ENTERED = 303
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}
NO_TOKEN = (
    "This page needs its token.\n\n"
    "Open the whole address that dyno printed, from http:// to the end. Each time that dyno serves pages,\n"
    "it is another one.\n"
)


class AddressGuard:
    """Stands before all pages. A token in the address becomes a cookie, so that links need none. A program
    may send it as a bearer token (RFC 6750)."""

    def __init__(self, pages: ASGIApp, address: Address) -> None:
        self._pages = pages
        self._address = address
        self.admits: Callable[[Scope], object] = lambda _scope: None
        """Is told of each request that had the token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        if scope["type"] != "http":
            return
        refusal = self._refusal(Request(scope))
        if refusal is None or refusal.status_code == ENTERED:
            self.admits(scope)
        answer = refusal or self._pages
        await answer(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """What is answered in the place of a page; None for who may see it."""
        if request.headers.get("host", "") not in self._address.hosts:
            return PlainTextResponse("This server has another name.\n", 421)
        if request.method not in READING:
            return PlainTextResponse("Pages can only be read.\n", 405, {"Allow": ", ".join(READING)})
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(bearer.strip()):
            return None
        if (given := request.query_params.get(TOKEN)) is not None:
            return self._entered(request, given)
        if not self._is_token(request.cookies.get(self._address.cookie, "")):
            return PlainTextResponse(NO_TOKEN, 403)
        return None

    def _entered(self, request: Request, given: str) -> Response:
        """To the same page without the token, so that it stays in no history."""
        if not self._is_token(given):
            return PlainTextResponse(NO_TOKEN, 403)
        # A path of two slashes would lead to another host.
        path = "/" + quote(request.url.path.lstrip("/"))
        answer = RedirectResponse(path, ENTERED)
        answer.set_cookie(self._address.cookie, given, httponly=True, samesite="strict")
        return answer

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._address.token.encode())


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
