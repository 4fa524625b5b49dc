"""The pages beside a run, served by a child process that ends with it.

The run's own process neither imports a server nor answers a browser.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dbdyno.errors import DynoError
from dbdyno.host.cache import Tell
from dbdyno.host.process import die_with_parent
from dbdyno.interrupts import shielded
from dbdyno.serve.address import Address
from dbdyno.serve.errand import DRAWN_S, FETCHED_S, READY, Errand

START_S, END_S = 60.0, DRAWN_S + FETCHED_S + 5.0
"""So long the child has at most to load what it needs, and to end."""


@contextmanager
def pages_beside(
    listener: socket.socket, address: Address, store_url: str, path: str, tell: Tell
) -> Iterator[None]:
    """Within, pages are served, and the one at this path is always drawn. Raises DynoError where they cannot
    be. What ends them early leaves the run alone, and is told at its end."""
    errand = Errand(
        descriptor=listener.fileno(),
        port=address.port,
        token=address.token,
        store_url=store_url,
        pinned=path,
    )
    with listener:
        # A group of its own, so that Ctrl-C on a terminal is left to the run.
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "dbdyno.serve.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
    try:
        _require_ready(child, errand)
        yield
    finally:
        with shielded():
            _end(child, tell)


def _require_ready(child: subprocess.Popen[str], errand: Errand) -> None:
    """Returns when the child has loaded what it needs, so that it loads nothing during a block."""
    assert child.stdin is not None and child.stdout is not None
    with suppress(BrokenPipeError):
        child.stdin.write(f"{errand.model_dump_json()}\n")
        child.stdin.flush()
    answered, _, _ = select.select([child.stdout], [], [], START_S)
    if not answered or child.stdout.readline() != READY:
        raise DynoError("the server of the pages did not start", "run without --live; see: dyno serve")


def _end(child: subprocess.Popen[str], tell: Tell) -> None:
    """Lets the child draw the last page, and waits for its end."""
    gone = child.poll() is not None
    try:
        child.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
    if gone:
        tell("the server of the pages ended before the run did; the run is not affected")
