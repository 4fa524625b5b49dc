"""Tasks in forks: all are carried out, their failures are dropped, and an interruption ends them."""

from __future__ import annotations

import os
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


def note(folder: Path, name: str) -> None:
    (folder / name).write_text(str(os.getpid()))


@pytest.mark.parametrize("at_a_time", [1, 2, 9])
def test_each_task_is_carried_out_by_a_process_of_its_own(tmp_path: Path, at_a_time: int) -> None:
    names, others = [f"task {number}" for number in range(5)], psutil.Process().children()
    carry_out([partial(note, tmp_path, name) for name in names], at_a_time)
    pids = {int((tmp_path / name).read_text()) for name in names}
    assert len(pids) == 5 and os.getpid() not in pids
    assert psutil.Process().children() == others


def test_what_a_task_raises_is_dropped_and_the_others_go_on(tmp_path: Path) -> None:
    def fails() -> None:
        raise BuildFailed("no compiler", "install one")

    carry_out([fails, partial(note, tmp_path, "after")], 1)
    assert (tmp_path / "after").exists()


def test_an_interruption_ends_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_sentinels: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forks, "wait", interrupted)
    tasks: list[Callable[[], None]] = [partial(time.sleep, LONG_S)] * 3
    others = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        carry_out(tasks, 2)
    assert psutil.Process().children() == others
