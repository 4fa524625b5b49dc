"""Who may see a page: whoever was given the address with its token, on this machine."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbdyno.serve.address import TOKEN, Address

READING = ("GET", "HEAD")
ENTERED = 303
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
NO_TOKEN = (
    "This page needs its token.\n\n"
    "Open the whole address that dyno printed, from http:// to the end. Each time that dyno serves pages,\n"
    "it is another one.\n"
)


class Guard:
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
