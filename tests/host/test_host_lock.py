"""One measurement at a time: who waits is told for whom, and only while that is true."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, RunLocked
from dbdyno.host import paths
from dbdyno.host.host_lock import NOTE, alone, holder, measured_now, undisturbed
from dbdyno.host.journal import open_journal, replay_abandoned
from tests.needs import IS_ROOT

pytestmark = pytest.mark.usefixtures("homes")

MEASURE = (
    "from dbdyno.host.host_lock import alone\n"
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
    with another(**elsewhere) as other, pytest.raises(RunLocked) as refused, alone("mine", 1.0, 0.0):
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("study", 3),
        ("study", ["x"]),
        ("run", {}),
        ("since_unix_s", "soon"),
        ("since_unix_s", 1e300),
        ("ends_unix_s", float("inf")),
        ("ends_unix_s", float("nan")),
        ("ends_unix_s", None),
        ("ends_unix_s", 10**400),
    ],
)
def test_a_note_with_a_value_of_another_kind_is_passed_over(name: str, value: object) -> None:
    with another():
        note = paths.host() / NOTE
        note.write_text(json.dumps(json.loads(note.read_text()) | {name: value}))
        with pytest.raises(RunLocked, match="another dyno") as refused, alone("mine", 1.0):
            pass
        assert refused.value.message == "another dyno measures on this machine"


ENDLESS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "zeros": lambda note: note.symlink_to("/dev/zero"),
    "long": lambda note: note.write_text(" " * (1 << 24) + "{}"),
    "deep": lambda note: note.write_text("[" * 60_000),
    "folder": Path.mkdir,
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_another_user_put_in_the_place_of_a_note_stops_nobody(kind: str) -> None:
    ENDLESS[kind](paths.host() / NOTE)
    # A process of its own, so that one that hangs, or eats all memory, ends.
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from dbdyno.host.host_lock import holder; print(holder())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "None\n", ended.stderr


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


@pytest.mark.skipif(not IS_ROOT, reason="only root can become somebody else")
def test_another_user_can_read_the_note() -> None:
    with alone("mine", 1.0):
        assert (paths.host() / NOTE).stat().st_mode & 0o044 == 0o044


OF_TWO_USERS = """
import os, sys
from contextlib import contextmanager
from pathlib import Path
from dbdyno.host import paths
from dbdyno.host.host_lock import alone
from dbdyno.host.host_lock import undisturbed
paths.ROOTS_HOST, paths.USERS_HOSTS = Path(sys.argv[1]) / "roots", Path(sys.argv[1])
os.setgid(65534)
os.setuid(65534)
with alone("Of nobody", 600.0), undisturbed():
    print("alone", flush=True)
    input()
"""


@pytest.mark.skipif(not IS_ROOT, reason="only root can become somebody else")
def test_dynos_of_two_users_wait_for_each_other_and_share_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.delenv(paths.HOST_VARIABLE)
        monkeypatch.setattr(paths, "ROOTS_HOST", Path(folder) / "roots")
        monkeypatch.setattr(paths, "USERS_HOSTS", Path(folder))
        code = [sys.executable, "-c", OF_TWO_USERS, folder]
        with subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None and other.stdout.readline() == "alone\n"
            assert measured_now()
            told = f'another dyno measures on this machine: process {other.pid} of nobody, "Of nobody"'
            with pytest.raises(RunLocked, match=re.escape(told)), alone("of root", 1.0):
                pass
            others = Path(folder) / "dyno-65534/locks"
            assert others.stat().st_mode & 0o077 == 0 and (others / "run.lock").exists()
            assert not (paths.host() / NOTE).exists()
            other.communicate("\n")
        with alone("of root", 1.0):
            assert not measured_now()


def test_a_lock_on_what_everybody_may_read_stops_nobody() -> None:
    online = Path("/sys/devices/system/cpu/online")
    with online.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with alone("mine", 1.0):
            pass
    assert paths.lock("run.lock").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not IS_ROOT, reason="only root can mount")
def test_a_full_folder_of_the_host_is_named(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = homes / "full"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(full)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this host does not permit mounts")
    try:
        monkeypatch.setenv(paths.HOST_VARIABLE, str(full))
        paths.lock("run.lock")
        with (full / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4096))
        with pytest.raises(DynoError, match="No space left on device") as refused, alone("mine", 1.0):
            pass
        assert refused.value.message.startswith(f"{full}/{NOTE} cannot be written")
        assert "what was stored is safe" in refused.value.hint
        assert sorted(path.name for path in full.iterdir()) == ["filler", "locks"]
    finally:
        subprocess.run(["umount", str(full)], check=True)


@pytest.mark.skipif(not IS_ROOT, reason="only root can mount")
def test_a_folder_of_the_host_that_takes_no_change_any_more_hides_no_failure(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a disk does that the kernel has made read-only after an error."""
    folder = homes / "worn"
    folder.mkdir()
    monkeypatch.setenv(paths.HOST_VARIABLE, str(folder))
    mounts = (["--bind", str(folder)], ["-o", "remount,bind,ro"])
    try:
        with (
            pytest.raises(DynoError, match="what ended it"),
            alone("mine", 1.0),
            undisturbed(),
            open_journal(),
        ):
            if any(
                subprocess.run(["mount", *each, str(folder)], capture_output=True).returncode
                for each in mounts
            ):
                pytest.skip("this host does not permit mounts")
            raise DynoError("what ended it")
        with pytest.raises(DynoError, match="may not be written") as refused, alone("mine", 1.0):
            pass
        assert paths.HOST_VARIABLE in refused.value.hint
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True)
    assert replay_abandoned() == []
    with alone("mine", 1.0), open_journal():
        pass
    assert list((folder / "journal").iterdir()) == []
