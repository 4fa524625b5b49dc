"""Ctrl-C and its kin: they end the current trial, never the putting back of the host."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def raise_on_signals() -> None:
    """Makes every ending signal arrive as KeyboardInterrupt, so that there is one way out."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, interrupt)


@contextmanager
def shielded() -> Iterator[None]:
    """Within, ending signals are noted and answered with a line; KeyboardInterrupt is raised at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        print("putting the host back first; a moment", file=sys.stderr)

    previous = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if noted:
        raise KeyboardInterrupt
