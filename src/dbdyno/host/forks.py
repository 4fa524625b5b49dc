"""Tasks that are carried out at the same time, each by a fork of this process that ends with it.

What one process alone may do, such as what changes the host, a fork asks this process for. It answers one
question after the other. So no fork holds a lock for which others would wait for ever once it is killed.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

from dbdyno.errors import DynoError
from dbdyno.host.process import die_with_parent

Question = TypeVar("Question")
Answer = TypeVar("Answer")
Found = TypeVar("Found")
Task = Callable[[Callable[[Question], Answer]], Found]
"""Is given a way to ask this process."""
FORK = multiprocessing.get_context("fork")
"""So that a task knows all that this process knows."""


@dataclass(frozen=True)
class _Asked:
    question: Any


@dataclass(frozen=True)
class _Told:
    found: Any


def carry_out(
    tasks: Sequence[Task[Question, Answer, Found]], at_a_time: int, answer: Callable[[Question], Answer]
) -> list[Found | None]:
    """Carries out tasks, and returns what each of them found: None for one that was killed, and for one that
    raised, because who needs what it makes looks for that, and meets the cause again. Questions, answers and
    what is found are pickled. Nothing of the tasks goes on after an interruption."""
    found: list[Found | None] = [None] * len(tasks)
    left = list(enumerate(tasks))
    going: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while left or going:
            while left and len(going) < at_a_time:
                number, task = left.pop(0)
                line, of_fork = FORK.Pipe()
                process = FORK.Process(target=partial(_quietly, die_with_parent(), task, of_fork))
                going[line] = number, process
                process.start()
                # The fork alone holds it, so that the line ends with the fork.
                of_fork.close()
            ready = wait(list(going))
            for line in [line for line in going if line in ready]:
                number, process = going[line]
                said = _said(line)
                if isinstance(said, _Asked):
                    _tell(line, answer(said.question))
                elif isinstance(said, _Told):
                    found[number] = said.found
                else:
                    process.join()
                    line.close()
                    del going[line]
    finally:
        for line, (_, process) in going.items():
            if process.is_alive():
                process.kill()
                process.join()
            line.close()
    return found


def _said(line: Connection) -> _Asked | _Told | None:
    """What a fork said; None where it has ended."""
    try:
        said: _Asked | _Told = line.recv()
    except (EOFError, OSError):
        return None
    return said


def _tell(line: Connection, answer: object) -> None:
    # A fork that was killed meanwhile is found to have ended.
    with suppress(OSError):
        line.send(answer)


def _quietly(tie: Callable[[], None], task: Task[Any, Any, Any], line: Connection) -> None:
    """A task in its fork. An interruption from the terminal reaches the fork as well."""
    tie()
    with suppress(DynoError, OSError, EOFError, KeyboardInterrupt):
        line.send(_Told(task(partial(_ask, line))))


def _ask(line: Connection, question: object) -> Any:
    line.send(_Asked(question))
    return line.recv()
