"""What a browser asks for, and what it is answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from dbdyno.host.host_lock import holder, measured_now
from dbdyno.report.renderers import page
from dbdyno.serve.address import Address, AddressGuard
from dbdyno.serve.drawer import Drawer, KeptPages
from dbdyno.serve.pages import LIVE, METRICS, READER, RUN, StorePages, is_page

ASK_AGAIN_S = 0.05
NOTHING_HERE = "There is no such page. The list of runs is at /\n"
NO_RUN = "No run is under way on this host in this store. The list of runs is at /\n"
WAITING = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><meta http-equiv='refresh' content='10'>"
    "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    "<meta name='color-scheme' content='light dark'><title>Please wait · Dyno</title>"
    "<body style='font: 16px/1.5 system-ui, sans-serif; max-width: 44em; margin: 3em auto; padding: 0 1em'>"
    "<h1>A block is being measured</h1>{who}"
    "<p>This page was not drawn before, and nothing is drawn meanwhile, because that would disturb the"
    " measurement. It looks again every ten seconds.</p>{drawn}</body></html>"
)


def waiting(drawn: Iterable[str]) -> str:
    """What stands in the place of a page that is not drawn yet: who measures and until when, and which pages
    are there. No template is filled, because that would take a CPU from the block."""
    measuring = holder()
    who = ""
    if measuring is not None:
        run = f" <p>The run is <b>{escape(measuring.run)}</b>.</p>" if measuring.run else ""
        who = f"<p>{escape(measuring.in_words(time.time()))}.</p>{run}"
    links = "".join(f"<li><a href='{escape(path)}'>{escape(path)}</a></li>" for path in drawn)
    return WAITING.format(who=who, drawn=f"<p>These pages are there:</p><ul>{links}</ul>" if links else "")


@dataclass
class PageReader:
    """Whoever has a page open, by the name that the page's script gave itself; and what he has on."""

    path: str
    name: str
    shown: str


class PageFollowers:
    """Those who have a page open. All of it happens in the event loop."""

    def __init__(self) -> None:
        self.queues: dict[asyncio.Queue[tuple[str, str]], PageReader] = {}
        self.farewell: tuple[str, str] | None = None

    def tell(self, path: str, shown: str) -> None:
        """The page at a path is another one now."""
        for queue, follower in self.queues.items():
            if follower.path == path:
                queue.put_nowait(("drawn", shown))

    def took(self, path: str, name: str, shown: str) -> None:
        """The follower of that name has this page on from now on; nobody is meant by no name."""
        for follower in self.of(path):
            if name and follower.name == name:
                follower.shown = shown

    def of(self, path: str) -> list[PageReader]:
        """Those who have the page at a path open."""
        return [follower for follower in self.queues.values() if follower.path == path]

    def end(self, text: str) -> None:
        """Nothing follows."""
        self.farewell = ("over", text)
        for queue in self.queues:
            queue.put_nowait(self.farewell)


class StoreApplication:
    """The pages of a store, behind their guard."""

    def __init__(self, pages: StorePages, address: Address, pinned: str = "") -> None:
        self._pages = pages
        self._loop: asyncio.AbstractEventLoop | None = None
        self.following = PageFollowers()
        self.drawer = Drawer(pages.draw, pages.state, self._drawn, KeptPages.of_store(pages.store_url))
        if self.drawer.ready:
            # Their figures ask for it, and during a block nobody draws a page that would load it.
            page.vega()
        self._is_collected = False
        if pinned:
            self.drawer.watch(pinned)
        routes = [
            Route("/events", self._events),
            Route("/vega.js", self._library),
            Route(LIVE, self._live),
            Route("/{path:path}", self._page),
        ]
        self.guarded = AddressGuard(Starlette(routes=routes), address)

    def begin(self) -> None:
        """Draws from now on; called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self.drawer.start()

    async def drawn_anew(self, path: str) -> None:
        """Returns when the page says what the store holds by now, or a block is measured."""
        self.drawer.ask(path)
        while self.drawer.is_asked(path) and not measured_now():
            await asyncio.sleep(ASK_AGAIN_S)

    async def fetched(self, path: str) -> None:
        """Returns when all who have the page open have the one that was drawn last."""
        while not self._all_have_latest(path):
            await asyncio.sleep(ASK_AGAIN_S)

    def _all_have_latest(self, path: str) -> bool:
        ready = self.drawer.ready.get(path)
        return all(ready is not None and one.shown == ready.shown for one in self.following.of(path))

    def _drawn(self, path: str) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.following.tell, path, self.drawer.ready[path].shown)

    async def _page(self, request: Request) -> Response:
        # Each list that is asked for is a page of its own.
        path = quote(request.url.path) + (f"?{request.url.query}" if request.url.query else "")
        if not is_page(path):
            return PlainTextResponse(NOTHING_HERE, 404)
        if path == METRICS and not self._is_collected:
            # Who collects comes again, and seldom between two blocks.
            self._is_collected = True
            self.drawer.watch(path)
        await self.drawn_anew(path)
        found = self.drawer.ready.get(path)
        if found is None:
            there = [one for one in self.drawer.ready if one != METRICS]
            return HTMLResponse(waiting(there), 503, {"Retry-After": "10"})
        self.following.took(path, request.headers.get(READER, ""), found.shown)
        return Response(found.body, found.status, media_type=found.media_type)

    async def _live(self, _request: Request) -> Response:
        run = self._pages.run_under_way()
        return RedirectResponse(f"{RUN}{quote(run)}", 303) if run else PlainTextResponse(NO_RUN, 404)

    async def _library(self, _request: Request) -> Response:
        if not page.vega.cache_info().currsize:
            return PlainTextResponse(NOTHING_HERE, 404)
        return Response(page.vega(), media_type="text/javascript")

    async def _events(self, request: Request) -> Response:
        path, name, shown = (request.query_params.get(one, "") for one in ("page", "reader", "shown"))
        if not is_page(path):
            return PlainTextResponse(NOTHING_HERE, 404)
        follower = PageReader(path, name, shown)
        return StreamingResponse(self._told(follower), media_type="text/event-stream")

    async def _told(self, follower: PageReader) -> AsyncIterator[str]:
        """What happens to a page, from what its follower has on."""
        queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        path = follower.path
        self.following.queues[queue] = follower
        self.drawer.watch(path)
        ready = self.drawer.ready.get(path)
        if ready is not None and ready.shown != follower.shown:
            queue.put_nowait(("drawn", ready.shown))
        if self.following.farewell is not None:
            queue.put_nowait(self.following.farewell)
        try:
            yield ": following\n\n"
            kind = ""
            while kind != "over":
                kind, text = await queue.get()
                yield f"event: {kind}\ndata: {text}\n\n"
        finally:
            self.drawer.leave(path)
            del self.following.queues[queue]
