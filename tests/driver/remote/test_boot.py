"""What runs on a load host, tried on this one: it is reached by a command that logs in here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbdyno.driver.job import Job
from dbdyno.driver.load_process import Conversation
from dbdyno.driver.remote import boot, load, ssh
from dbdyno.driver.remote.load import DriverOnHost, install
from dbdyno.driver.remote.ssh import archive
from dbdyno.errors import DriverFailed
from tests.load_hosts import NAME, log_in_here

DEADLINE_S = 30.0


def driver_on(monkeypatch: pytest.MonkeyPatch, folder: Path, before: str = "") -> DriverOnHost:
    log_in_here(folder, monkeypatch, before)
    install(NAME)
    return DriverOnHost(NAME)


def wait_until_gone(process_id: int) -> None:
    """The process is a child of nobody who waits for it, or one that is waited for here."""
    deadline = time.monotonic() + DEADLINE_S
    while Path(f"/proc/{process_id}").exists():
        assert time.monotonic() < deadline, f"{process_id} is still there"
        time.sleep(0.05)


def child_of(driver: DriverOnHost) -> subprocess.Popen[bytes]:
    conversation: Conversation = driver._conversation
    return conversation.child


def test_a_driver_is_kept_under_its_hash_and_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = log_in_here(tmp_path, monkeypatch)
    path = install(NAME)
    assert path == str(home / ".cache" / "dyno" / f"driver-{archive().digest[:16]}.zip")
    assert Path(path).read_bytes() == archive().content
    assert [one.name for one in Path(path).parent.iterdir()] == [Path(path).name]
    driver = DriverOnHost(NAME)
    try:
        assert driver.about["cpus"] == os.cpu_count()
        assert driver.ask(60.0, verb="query", url=f"sqlite://{tmp_path}/x", sql="SELECT 7")["reply"][
            "rows"
        ] == [[7]]
    finally:
        driver.close()
    assert child_of(driver).returncode == 0


def test_what_a_login_shell_prints_first_is_not_taken_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver_on(monkeypatch, tmp_path, before='echo "{welcome}"; echo 7').close()


def test_a_host_without_the_driver_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in_here(tmp_path, monkeypatch)
    with pytest.raises(DriverFailed, match="the driver of this Dyno is not on load1") as absent:
        DriverOnHost(NAME)
    assert absent.value.hint == "copy it there: dyno fleet driver install load1"


def test_a_file_that_was_changed_is_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_in_here(tmp_path, monkeypatch)
    path = Path(install(NAME))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DriverFailed, match=r"the driver's file on load1 is not what was copied there"):
        DriverOnHost(NAME)


def test_a_host_that_cannot_write_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = log_in_here(tmp_path, monkeypatch)
    (home / ".cache").write_text("a file where a folder should be")
    with pytest.raises(
        DriverFailed, match=r"load1 cannot keep the driver's file: .*/\.cache/dyno: Not a dir"
    ):
        install(NAME)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = log_in_here(tmp_path, monkeypatch, before="ulimit -f 8; trap '' XFSZ")
    with pytest.raises(DriverFailed, match=r"cannot keep the driver's file: .*: File too large"):
        install(NAME)
    assert list((home / ".cache" / "dyno").iterdir()) == []


def test_a_load_in_one_piece_ends_with_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_on(monkeypatch, tmp_path)
    url = f"sqlite://{tmp_path}/rows?synchronous=off&journal_mode=wal"
    job = Job(url=url, workload="tpcb", duration_s=600.0)
    driver.ask(60.0, verb="prepare", job=job.model_dump())
    child = child_of(driver)
    driver._conversation.send(b'{"verb": "run", "job": %s}\n' % job.model_dump_json().encode(), "run")
    wal = Path(f"{tmp_path}/rows-wal")
    deadline = time.monotonic() + DEADLINE_S
    while not wal.exists() or not wal.stat().st_size:
        assert time.monotonic() < deadline, "the load did not begin"
        time.sleep(0.05)
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(DEADLINE_S) == 0
    driver.kill()


def test_a_driver_that_hears_nothing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "QUIET_S", 0.5)
    driver = driver_on(monkeypatch, tmp_path)
    assert child_of(driver).wait(DEADLINE_S) == 1
    with pytest.raises(DriverFailed, match=r"the driver on load1 died during `ping` \(exit code 1\)"):
        driver.ping()
    driver.kill()


def test_a_driver_that_waits_for_long_is_told_that_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "QUIET_S", 2.0)
    monkeypatch.setattr(load, "BEAT_S", 0.2)
    driver = driver_on(monkeypatch, tmp_path)
    time.sleep(3.0)
    stamps, _ = driver.ping()
    assert stamps.round_trip_s > 0.0
    driver.close()


def test_a_text_is_held_in_memory_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_on(monkeypatch, tmp_path)
    path = driver.hold("a certificate")
    child = child_of(driver)
    there = Path(path.replace("self", str(child.pid)))
    assert there.read_text() == "a certificate"
    assert str(there.readlink()).startswith("/memfd:")
    driver.kill()


def test_nothing_but_pythons_own_library_is_imported_there() -> None:
    code = "import sys; before = set(sys.modules); exec(sys.stdin.read()); print(*set(sys.modules) - before)"
    command = [sys.executable, "-S", "-c", code]
    text = ssh.program("pass")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert roots <= sys.stdlib_module_names
    assert Path(boot.__file__).read_text() in text
