"""Nobody draws while a block is measured, and nobody who draws holds up a run for long."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dbdyno.host import host_lock as module
from dbdyno.host import paths
from dbdyno.host.host_lock import LookBetweenBlocks, measured_now, undisturbed

pytestmark = pytest.mark.usefixtures("homes")

DRAW = (
    "from dbdyno.host.host_lock import LookBetweenBlocks\nwith LookBetweenBlocks() as look:\n"
    "    print('drawing', flush=True); input()\n    look.give_way(); print('again', flush=True); input()"
)


@contextmanager
def drawing() -> Iterator[subprocess.Popen[str]]:
    """Another process, which draws once it may."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRAW], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_who_draws_waits_for_the_end_of_a_block() -> None:
    said: list[str] = []
    with ExitStack() as stack:
        with undisturbed():
            other = stack.enter_context(drawing())
            reader = threading.Thread(target=lambda: said.append(next_line(other)))
            reader.start()
            # Another process is up long before.
            reader.join(timeout=2.0)
            assert said == [] and measured_now()
        reader.join()
    assert said == ["drawing\n"]


def test_a_block_waits_for_what_is_being_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 60.0)
    measured = threading.Event()

    def measure() -> None:
        with undisturbed():
            measured.set()

    with drawing() as other:
        assert next_line(other) == "drawing\n"
        run = threading.Thread(target=measure)
        run.start()
        assert not measured.wait(0.5)
        # It gives way between two pages, and goes on when the block is over.
        go_on(other)
        assert measured.wait(30.0)
        assert next_line(other) == "again\n"
        run.join()


def test_what_takes_too_long_to_draw_does_not_hold_up_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    with drawing() as other:
        assert next_line(other) == "drawing\n"
        with undisturbed():
            # The door is shut, so nobody else begins.
            assert measured_now()
    assert not measured_now()


def test_who_dies_while_he_draws_leaves_the_room() -> None:
    room = paths.lock(module.ROOM)
    with drawing() as other, room.open() as lock:
        assert next_line(other) == "drawing\n"
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        other.kill()
        other.wait()
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_several_draw_at_once() -> None:
    with drawing() as one, drawing() as other, LookBetweenBlocks():
        assert next_line(one) == next_line(other) == "drawing\n"
        assert not measured_now()
