"""The server of the pages beside a run, as a process of its own: `python -m dbdyno.serve.child`.

Its standard input holds one line, an `Errand` as JSON, and ends with the run. It answers once it has loaded
what it needs, because nothing is loaded while a block is measured.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress

from dbdyno.report.renderers import page
from dbdyno.serve.address import Address
from dbdyno.serve.application import StoreApplication
from dbdyno.serve.errand import DRAWN_S, FETCHED_S, READY, Errand
from dbdyno.serve.server import serve


def main() -> None:
    """Serves until standard input ends."""
    errand = Errand.model_validate_json(sys.stdin.readline())
    farewells = set[asyncio.Task[None]]()

    def begin(application: StoreApplication, ended: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()

        def run_is_over() -> None:
            loop.remove_reader(sys.stdin)
            farewells.add(loop.create_task(_farewell(application, errand.pinned, ended)))

        loop.add_reader(sys.stdin, run_is_over)
        sys.stdout.write(READY)
        sys.stdout.flush()

    page.vega()
    listener = socket.socket(fileno=errand.descriptor)
    serve(listener, Address(errand.port, errand.token), errand.store_url, begin, errand.pinned)


async def _farewell(application: StoreApplication, path: str, ended: asyncio.Event) -> None:
    """Whoever has the run's page open gets the one of the run that is over."""
    try:
        if application.following.of(path):
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAWN_S):
                    await application.drawn_anew(path)
                async with asyncio.timeout(FETCHED_S):
                    await application.fetched(path)
    finally:
        ended.set()


if __name__ == "__main__":
    main()
