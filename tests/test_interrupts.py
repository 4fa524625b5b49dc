"""Ending signals: the first interrupts, later ones get a line, none reaches the putting back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from dbdyno.interrupts import SIGNALS, raise_on_signals, shielded


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    raise_on_signals()
    yield
    raise_on_signals()
    for number, handler in previous.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_every_ending_signal_interrupts(number: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def test_a_second_signal_does_not_interrupt_again(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    assert capsys.readouterr().err == "putting the host back first; a moment\n"


def test_a_shield_lets_its_work_end_first(capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), shielded():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("first")
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("second")
    assert done == ["first", "second"]
    assert capsys.readouterr().err.count("a moment") == 2


def test_a_shield_raised_after_an_interrupt_keeps_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            with shielded():
                os.kill(os.getpid(), signal.SIGINT)
            done.append("put back")
    assert done == ["put back"]
