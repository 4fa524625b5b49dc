"""The command as tests call it, and what it says of a mistake."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO
from unittest import mock

import pytest

import dbdyno
from dbdyno.cli import main
from dbdyno.interrupts import SIGNALS
from dbdyno.prepare_run import running, study_here

STUDY = """
title  = "Which page size?"
engine = "firebird@5"
blocks = 2
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "1s"
[factors]
"config.page_size" = [8192, 16384]
"""


@dataclass(frozen=True)
class Said:
    """What a call printed and how it ended."""

    returncode: int
    stdout: str
    stderr: str


def dyno(*arguments: str) -> Said:
    """Calls the command as its entry point does, and checks what holds for every call: no traceback, no
    fault of Dyno's own."""
    output, errors = io.StringIO(), io.StringIO()
    code = called(arguments, output, errors)
    said = Said(code, output.getvalue(), errors.getvalue())
    assert "Traceback" not in said.stdout + said.stderr
    assert "this is a fault in Dyno" not in said.stderr, said.stderr
    return said


def called(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Calls the command, which writes there, and returns its exit code."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    study_here.located.cache_clear()
    running.look_anew()
    try:
        with (
            mock.patch.object(sys, "argv", ["dyno", *arguments]),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            mock.patch.object(sys, "__stdout__", sys.__stdout__),
            mock.patch.object(sys, "__stderr__", sys.__stderr__),
        ):
            with pytest.raises(SystemExit) as exit_:
                main()
            # The command puts streams of its own around them.
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return int(exit_.value.code or 0)


class _Kept(io.BytesIO):
    """Is not closed by the stream around it."""

    def close(self) -> None:
        pass


def piped(arguments: Sequence[str], encoding: str = "utf-8") -> tuple[int, bytes, bytes]:
    """Calls the command with streams that take this encoding, and returns its exit code and what it wrote to
    each."""
    output, errors = _Kept(), _Kept()
    code = called(arguments, *(io.TextIOWrapper(stream, encoding=encoding) for stream in (output, errors)))
    return code, output.getvalue(), errors.getvalue()


def complaint(*arguments: str, code: int = 2) -> str:
    """What a call that must fail says."""
    result = dyno(*arguments)
    assert (result.returncode, result.stdout) == (code, ""), result.stderr
    return result.stderr


@pytest.fixture
def study(homes_with_engines: Path) -> Path:
    path = homes_with_engines / "study.toml"
    path.write_text(STUDY)
    return path


def changed(study: Path, old: str, new: str) -> str:
    """The path of the study, in which this now stands instead of that."""
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new))
    return str(study)


def shorter(study: str) -> str:
    """The text of a study with shorter loads: what a trial finds does not hang on that in a test."""
    return re.sub(r'^(warmup|duration)( *= *)"[^"]*"', r'\1\2"0.2s"', study, flags=re.MULTILINE)


PACKAGE = str(Path(dbdyno.__file__).parent)


@contextmanager
def calls_counted() -> Iterator[Counter[str]]:
    """How often each function of the package is called within, by name. By the interpreter's own hook, for
    names are imported into many modules."""
    calls: Counter[str] = Counter()

    def seen(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        yield calls
    finally:
        sys.setprofile(before)
