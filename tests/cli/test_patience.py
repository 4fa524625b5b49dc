"""Steps outside of a run: for how long they go on, and what is left of them."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from dbdyno.cli.patience import LINE_EVERY_S, SILENT_S, Patience
from dbdyno.host.cache import ProgressStep
from tests.fakes import Clock


def test_without_a_terminal_a_line_now_and_then_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    patience = Patience(None, clock)
    patience.tell(ProgressStep.of("fetching toy", lambda: clock.now_s / 120))
    for clock.now_s in (SILENT_S, LINE_EVERY_S, LINE_EVERY_S + 1, 2 * LINE_EVERY_S):
        patience.look()
    patience.tell("unpacking toy")
    patience.end()
    assert capsys.readouterr().err.splitlines() == [
        "fetching toy",
        "fetching toy: 25% for 30 s, about 2 min left",
        "fetching toy: 50% for 1 min, about 1 min left",
        "unpacking toy",
    ]


def test_a_step_that_is_soon_over_says_nothing_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    patience = Patience(None, clock)
    patience.quietly("analysing")
    clock.now_s = LINE_EVERY_S - 1
    patience.look()
    assert capsys.readouterr().err == ""
    clock.now_s = LINE_EVERY_S
    patience.look()
    patience.end()
    assert capsys.readouterr().err == "analysing: for 30 s\n"


def test_a_terminal_shows_a_bar_once_a_step_takes_long_and_takes_it_away() -> None:
    clock, shown = Clock(), io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    columns = (BarColumn(), TextColumn("{task.description}"))
    patience = Patience(Progress(*columns, console=console, transient=True, auto_refresh=False), clock)
    patience.quietly("analysing a run")
    clock.now_s = SILENT_S / 2
    patience.look()
    assert shown.getvalue() == ""
    clock.now_s = 3 * SILENT_S
    patience.look()
    assert "analysing a run: for 6 s" in shown.getvalue()
    patience.end()
    assert shown.getvalue().endswith("\x1b[2K\x1b[?25h\r"), "the line is cleared at last"


SLOW = """
import time
from dbdyno.cli.patience import waiting
with waiting("counting sheep"):
    time.sleep(3.5)
print("counted")
"""


def test_the_bar_is_on_standard_error_alone() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=theirs) as child:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # The other end is closed.
            pass
        output = child.stdout.read() if child.stdout else b""
    os.close(ours)
    assert output == b"counted\n" and b"counting sheep: for " in said


def test_what_is_done_is_never_more_than_all(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    patience = Patience(None, clock)
    patience.tell(ProgressStep.of("fetching toy", lambda: 1.2))
    clock.now_s = LINE_EVERY_S
    patience.look()
    assert capsys.readouterr().err.endswith("100% for 30 s, about 0 s left\n")
