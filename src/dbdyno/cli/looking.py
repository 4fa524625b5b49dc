"""A look at what goes on, now and then, by a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def looking(look: Callable[[], None], every_s: float) -> Iterator[None]:
    """Calls `look` again and again, until the work that it looks at is over."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every_s):
            look()

    thread = threading.Thread(target=watch, name="looking", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
