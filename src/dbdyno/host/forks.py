"""Tasks that are carried out at the same time, each by a fork of this process that ends with it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess

from dbdyno.errors import DynoError
from dbdyno.host.process import die_with_parent

Task = Callable[[], object]
FORK = multiprocessing.get_context("fork")
"""So that a task knows all that this process knows. What it finds stays its own."""


def carry_out(tasks: Sequence[Task], at_a_time: int) -> None:
    """Carries out tasks that leave what they make on disk. What one of them raises is dropped: who needs
    what it makes looks for that, and meets the cause again. Nothing of them goes on after an interruption."""
    going: list[ForkProcess] = []
    try:
        for task in tasks:
            if len(going) == at_a_time:
                wait([process.sentinel for process in going])
                going = [process for process in going if process.is_alive()]
            process = FORK.Process(target=partial(_quietly, die_with_parent(), task))
            going.append(process)
            process.start()
        for process in going:
            process.join()
    finally:
        for process in going:
            if process.is_alive():
                process.kill()
                process.join()


def _quietly(tie: Callable[[], None], task: Task) -> None:
    """A task in its fork. An interruption from the terminal reaches the fork as well."""
    tie()
    with suppress(DynoError, OSError, KeyboardInterrupt):
        task()
