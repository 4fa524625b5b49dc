"""One measurement at a time: who waits is told for whom, and only while that is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import RunLocked
from dbdyno.host import paths
from dbdyno.host.alone import NOTE, alone, holder

pytestmark = pytest.mark.usefixtures("homes")

MEASURE = (
    "from dbdyno.host.alone import alone\n"
    "with alone('Which flush?', 600.0):\n    print('alone', flush=True); input()"
)


@contextmanager
def another(**environment: str) -> Iterator[subprocess.Popen[str]]:
    """Another Dyno that measures until it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURE],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "alone\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_who_is_refused_is_told_whom_to_wait_for(homes: Path) -> None:
    elsewhere = {"XDG_STATE_HOME": str(homes / "other"), "XDG_RUNTIME_DIR": "/nowhere"}
    with another(**elsewhere) as other, pytest.raises(RunLocked) as refused, alone("mine", 1.0):
        pass
    said = refused.value.message
    assert f"another dyno measures on this machine: process {other.pid} of " in said
    assert '"Which flush?", since ' in said
    assert said.endswith(" min left")
    assert "--wait 10m" in refused.value.hint


def test_who_waits_goes_on_when_the_other_has_ended() -> None:
    told: list[str] = []
    with another() as other:

        def tell(line: str) -> None:
            told.append(line)
            assert other.stdin is not None
            other.stdin.write("\n")
            other.stdin.flush()

        with alone("mine", 1.0, float("inf"), tell):
            now = holder()
            assert now is not None
            assert (now.process_id, now.study) == (os.getpid(), "mine")
    assert len(told) == 1
    assert told[0].startswith(f"waiting for another dyno to end: process {other.pid} of ")
    assert holder() is None


def test_a_bounded_wait_ends() -> None:
    with another(), pytest.raises(RunLocked, match="still measures"), alone("mine", 1.0, 0.3):
        pass


def test_the_note_of_a_dyno_that_was_killed_does_not_count() -> None:
    with another() as other:
        assert holder() is not None
        other.kill()
        other.wait()
        assert (paths.host() / NOTE).exists()
        assert holder() is None
        with alone("mine", 1.0):
            pass
    assert not (paths.host() / NOTE).exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"process_id": "x"}', "\0"])
def test_a_note_that_is_none_is_passed_over(text: str) -> None:
    (paths.host() / NOTE).write_text(text)
    assert holder() is None


def test_a_note_that_names_somebody_elses_process_does_not_count() -> None:
    with another():
        note = paths.host() / NOTE
        about = json.loads(note.read_text())
        note.write_text(json.dumps(about | {"start_ticks": about["start_ticks"] + 1}))
        assert holder() is None


def test_a_title_cannot_write_on_the_terminal() -> None:
    with alone("red \033[31m\n" + "long " * 100, 1.0):
        found = holder()
        assert found is not None
        said = found.in_words(found.since_unix_s)
    assert said.isprintable()
    assert len(said) < 200
    assert "about to end" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_can_read_the_note() -> None:
    with alone("mine", 1.0):
        assert (paths.host() / NOTE).stat().st_mode & 0o044 == 0o044
