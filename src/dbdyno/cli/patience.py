"""What is said while a step outside of a run takes long: for how long it goes on, and what is left of it.

A thread of its own says it, so this is for steps that change nothing of this process, such as a fetch or an
analysis. While a trial is measured, its run's progress speaks (`progress.py`).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from dbdyno.cli import terminal
from dbdyno.host.cache import ProgressStep
from dbdyno.report.words.numbers import about_text


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


SILENT_S = 2.0
"""So long a step may take before more is said than its name."""
LINE_EVERY_S = 30.0
"""How often a line says so where there is no terminal."""
LOOK_EVERY_S = 0.5
LEAST_SHARE = 0.02
"""Of a step, before what is left of it is told."""


class Patience:
    """Tells lines, each of which is a step that goes on until the next one. A line that is a `ProgressStep`
    says how much of it is done."""

    def __init__(self, bar: Progress | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar = bar
        self._clock = clock
        self._step, self._named = "", False
        self._began_s = self._said_s = clock()
        self._task: TaskID | None = None
        self._lock = threading.Lock()

    def tell(self, line: str) -> None:
        """A step begins."""
        with self._lock:
            self._hide()
            self._say(line)
            self._begin(line, named=True)

    def quietly(self, step: str) -> None:
        """A step begins whose name is only said where it takes long."""
        with self._lock:
            self._hide()
            self._begin(step, named=False)

    def look(self) -> None:
        """Shows how the step goes on, where it has taken long by now."""
        with self._lock:
            now_s = self._clock()
            if not self._step or now_s - self._began_s < SILENT_S:
                return
            if self._bar is not None:
                self._show(self._bar, now_s - self._began_s)
            elif now_s - self._said_s >= LINE_EVERY_S:
                self._said_s = now_s
                terminal.tell(f"{self._step}: {self._far(now_s - self._began_s)}")

    def end(self) -> None:
        """No step goes on any more."""
        with self._lock:
            self._hide()
            self._step = ""

    def _begin(self, step: str, named: bool) -> None:
        self._step, self._named = step, named
        self._began_s = self._said_s = self._clock()

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, soft_wrap=True)
        else:
            terminal.tell(line)

    def _show(self, bar: Progress, took_s: float) -> None:
        share = self._share()
        if self._task is None:
            self._task = bar.add_task("", total=None)
        bar.update(
            self._task,
            description=self._far(took_s) if self._named else f"{self._step}: {self._far(took_s)}",
            total=None if share is None else 1.0,
            completed=share or 0.0,
        )
        bar.start()
        bar.refresh()

    def _hide(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._bar.stop()
            self._task = None

    def _share(self) -> float | None:
        return min(1.0, self._step.share()) if isinstance(self._step, ProgressStep) else None

    def _far(self, took_s: float) -> str:
        """For how long the step has gone on, and what is left of it by what is done."""
        share, took = self._share(), f"for {about_text(took_s)}"
        if share is None:
            return took
        done = f"{share:.0%} {took}"
        return done if share < LEAST_SHARE else f"{done}, about {about_text(took_s / share - took_s)} left"


@contextmanager
def patient() -> Iterator[Patience]:
    """Says on standard error how steps go on: below their line on a terminal, and in lines otherwise."""
    bar = None
    if sys.stderr.isatty():
        columns = (BarColumn(), TextColumn("{task.description}", markup=False))
        bar = Progress(*columns, console=terminal.terminal(stderr=True), transient=True, auto_refresh=False)
    patience = Patience(bar)
    try:
        with looking(patience.look, LOOK_EVERY_S):
            yield patience
    finally:
        patience.end()


@contextmanager
def waiting(step: str) -> Iterator[None]:
    """Says how one step goes on, whose name is only said where it takes long."""
    with patient() as patience:
        patience.quietly(step)
        yield
