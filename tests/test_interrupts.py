"""Ending signals: the first interrupts, later ones get a line, none reaches the restoring."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from pydantic import Field

from dbdyno import interrupts
from dbdyno.frozen import Frozen
from dbdyno.interrupts import AGAIN, SIGNALS, raise_on_signals, shielded
from dbdyno.report.words.safe import json_text


@pytest.fixture
def answers() -> list[str]:
    """What was answered to signals that came later."""
    return []


@pytest.fixture(autouse=True)
def handlers(answers: list[str]) -> Iterator[None]:
    previous = {number: signal.getsignal(number) for number in (*SIGNALS, AGAIN)}
    hook = sys.unraisablehook
    raise_on_signals(lambda: answers.append("heard"))
    yield
    raise_on_signals(lambda: None)
    sys.unraisablehook = hook
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_every_ending_signal_interrupts(number: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def test_a_second_signal_does_not_interrupt_again(answers: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    assert answers == ["heard"]


class Interrupted:
    """The signal comes while the interpreter takes this apart, where it drops what is raised."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)


def test_an_interruption_that_the_interpreter_drops_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    raise_on_signals(lambda: None)
    with pytest.raises(KeyboardInterrupt):
        Interrupted()
        time.sleep(60)


def test_one_that_comes_again_waits_for_a_shield_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    # The timer itself could be early or late on a busy machine.
    monkeypatch.setattr(interrupts, "AGAIN_S", 3600)
    raise_on_signals(lambda: None)
    done = []
    with pytest.raises(KeyboardInterrupt):
        Interrupted()
        with shielded():
            signal.raise_signal(AGAIN)
            done.append("restored")
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert done == ["restored"]


def test_a_shield_lets_its_work_end_first(answers: list[str]) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), shielded():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("first")
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("second")
    assert done == ["first", "second"]
    assert answers == ["heard"] * 2


def test_a_shield_raised_after_an_interrupt_keeps_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            with shielded():
                os.kill(os.getpid(), signal.SIGINT)
            done.append("restored")
    assert done == ["restored"]


def left_out(_name: str) -> bool:
    os.kill(os.getpid(), signal.SIGINT)
    return False


class Asking(Frozen):
    """The signal comes while pydantic asks whether a field is written."""

    name: str = Field(default="a", exclude_if=left_out)


@pytest.mark.parametrize("written", [Asking.model_dump_json, json_text], ids=["a noun", "a report"])
def test_an_interruption_while_json_is_written_stays_one(written: Callable[[Asking], str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        written(Asking())
