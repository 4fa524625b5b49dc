"""Tasks in forks: all are carried out, one process answers what they ask, and an interruption ends them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import BuildFailed
from dbdyno.host import forks
from dbdyno.host.forks import carry_out

LONG_S = 600.0
Ask = Callable[[int], int]


def nothing(_question: int) -> int:
    raise AssertionError("nobody asks")


def own_pid(_ask: Ask) -> int:
    return os.getpid()


@pytest.mark.parametrize("at_a_time", [1, 2, 9])
def test_each_task_is_carried_out_by_a_process_of_its_own(at_a_time: int) -> None:
    others = psutil.Process().children()
    found = set(carry_out([own_pid] * 5, at_a_time, nothing))
    assert len(found) == 5 and not found & {None, os.getpid()}
    assert psutil.Process().children() == others


def test_no_more_tasks_go_on_than_were_asked_for(tmp_path: Path) -> None:
    def beside(_ask: Ask) -> int:
        own = tmp_path / str(os.getpid())
        own.touch()
        going = len(list(tmp_path.iterdir()))
        own.unlink()
        return going

    found = [going or 0 for going in carry_out([beside] * 30, 2, nothing)]
    assert min(found) >= 1 and max(found) <= 2


def test_what_a_task_raises_is_dropped_and_the_others_go_on() -> None:
    def fails(_ask: Ask) -> int:
        raise BuildFailed("no compiler", "install one")

    first, second = carry_out([fails, own_pid], 1, nothing)
    assert first is None and second is not None


def test_this_process_answers_what_tasks_ask() -> None:
    def asks(number: int, ask: Ask) -> tuple[int, int]:
        return ask(number), ask(number + 1)

    def answered(question: int) -> int:
        assert os.getpid() == here
        return 10 * question

    here = os.getpid()
    tasks = [partial(asks, number) for number in range(5)]
    assert carry_out(tasks, 3, answered) == [(10 * at, 10 * at + 10) for at in range(5)]


def test_a_task_that_is_killed_while_it_asks_holds_up_no_other() -> None:
    def asks(ask: Ask) -> int:
        return ask(os.getpid())

    def answered(process_id: int) -> int:
        victims.append(process_id)
        if len(victims) == 1:
            os.kill(process_id, signal.SIGKILL)
        return len(victims)

    victims: list[int] = []
    assert sorted(found or 0 for found in carry_out([asks] * 3, 2, answered)) == [0, 2, 3]


def asks_or_sleeps(asks: bool, ask: Ask) -> int:
    if asks:
        return ask(1)
    time.sleep(LONG_S)
    return 0


def test_an_interruption_ends_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_lines: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forks, "wait", interrupted)
    others = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        carry_out([partial(asks_or_sleeps, False)] * 3, 2, nothing)
    assert psutil.Process().children() == others


def test_an_interruption_of_an_answer_ends_all_tasks() -> None:
    def interrupted(_question: int) -> int:
        raise KeyboardInterrupt

    others = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        carry_out([partial(asks_or_sleeps, asks) for asks in (False, True)], 2, interrupted)
    assert psutil.Process().children() == others
