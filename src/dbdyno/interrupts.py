"""Ctrl-C and its kin: the first ends the current trial, and none ends the restoring of the host."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN, AGAIN_S = signal.SIGALRM, 0.01
"""A timer of Dyno's own, which raises an interruption again that the interpreter dropped."""


class _Ending:
    """Whether KeyboardInterrupt is on its way: a second one would cut short what the first set off.
    `answer` tells the user that a later signal was heard.
    """

    begun = False
    answer: Callable[[], None] = staticmethod(lambda: None)


def raise_on_signals(answer: Callable[[], None]) -> None:
    """Makes the first ending signal arrive as KeyboardInterrupt, the one way out. Each later one calls
    `answer`."""
    _Ending.begun = False
    _Ending.answer = staticmethod(answer)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if _Ending.begun:
            _Ending.answer()
            return
        _Ending.begun = True
        raise KeyboardInterrupt

    for number in (*SIGNALS, AGAIN):
        signal.signal(number, interrupt)
    sys.unraisablehook = _raise_again


def _raise_again(dropped: sys.UnraisableHookArgs) -> None:
    """What is raised within a finaliser, or as a weak reference ends, goes no further than that."""
    if dropped.exc_type is KeyboardInterrupt:
        _Ending.begun = False
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        sys.__unraisablehook__(dropped)


@contextmanager
def shielded() -> Iterator[None]:
    """Within, ending signals are noted and answered; KeyboardInterrupt is raised at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        _Ending.answer()

    previous = {number: signal.signal(number, note) for number in (*SIGNALS, AGAIN)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if noted and not _Ending.begun:
        _Ending.begun = True
        raise KeyboardInterrupt
