"""OpenSSH's client: how it is called, and what a user is told where it fails."""

from __future__ import annotations

import hashlib
import io
import platform
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.driver.remote import ssh
from dbdyno.driver.remote.boot import CHILD, MACHINE, MODULE, TO_SERVER, WORD_BYTES, carried
from dbdyno.driver.remote.load import DriverOnHost, install
from dbdyno.driver.remote.ssh import archive
from dbdyno.errors import LoadDied
from tests.load_hosts import NAME, log_in_here


def test_nobody_is_asked_for_a_password_and_a_dead_network_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ssh.VARIABLE, raising=False)
    command = ssh.command("load1", "pass")
    assert command[0] == "ssh" and command[-3:-1] == ["--", "load1"]
    assert {"BatchMode=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3"} <= set(command)


def test_a_users_own_command_logs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ssh.VARIABLE, "ssh -F '/some where/config'")
    assert ssh.command("load1", "pass")[:3] == ["ssh", "-F", "/some where/config"]


def run_remotely(text: str, path: str) -> subprocess.CompletedProcess[str]:
    """What the login shell does with the command, which finds its programs in `path`."""
    command = ssh.command("load1", text)[-1]
    shell = ["/bin/sh", "-c", command]
    return subprocess.run(shell, input=text, capture_output=True, text=True, env={"PATH": path})


def test_an_interpreter_is_taken_that_is_new_enough(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3.12").symlink_to(sys.executable)
    (tmp_path / "python3").chmod(0o755)
    done = run_remotely('print("it\'s", sys.version_info >= (3, 11))', str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "it's True\n")


def test_a_host_without_python_is_told(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    done = run_remotely("pass", str(tmp_path))
    failure = ssh.not_reached("load1", done.returncode, done.stderr)
    assert failure.message == "load1 has no Python 3.11 or later that its user finds"
    assert "install python3 there" in failure.hint


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "ssh: Could not resolve hostname load1: Name or service not known",
            "the host load1 is not known",
            "~/.ssh/config",
        ),
        (
            "root@load1: Permission denied (publickey).",
            "load1 lets nobody in without a password",
            "ssh-copy-id",
        ),
        ("Host key verification failed.", "the key of load1 is not known here", "ssh load1"),
        ("ssh: connect to host load1 port 22: Connection refused", "load1 does not answer SSH", "sshd"),
        ("ssh: connect to host load1 port 22: Connection timed out", "load1 does not answer SSH", "firewall"),
        ("kex_exchange_identification: banner line too long", "no driver began on load1", "ssh load1"),
    ],
)
def test_what_keeps_ssh_out_is_told_with_its_remedy(said: str, message: str, hint: str) -> None:
    failure = ssh.not_reached("load1", ssh.FAILED, f"Warning: something else\n{said}\n")
    assert failure.message == f"{message}: {said}"
    assert hint in failure.hint


def test_each_refusal_names_the_host_and_what_to_do() -> None:
    for why in ssh.REFUSALS:
        failure = ssh.refused("load1", {"refused": why, "detail": "some detail"})
        assert "load1" in failure.message and failure.hint and "{" not in failure.message + failure.hint
    assert ssh.refused("load1", {"refused": "absent", "detail": ""}).hint.endswith(
        "dyno fleet driver install load1"
    )


def test_a_connection_that_is_lost_is_told_from_a_driver_that_died() -> None:
    lost = ssh.lost("load1", "go on", ssh.FAILED, "Timeout, server load1 not responding.")
    assert isinstance(lost, LoadDied)
    assert lost.message == (
        "the connection to load1 was lost during `go on`: Timeout, server load1 not responding."
    )
    killed = ssh.lost("load1", "go on", ssh.FAILED, "")
    assert killed.message == "the driver on load1 was killed during `go on`"
    assert ssh.lost("load1", "run", 1, "").message == "the driver on load1 died during `run` (exit code 1)"


def test_the_same_driver_is_the_same_file_whenever_it_is_made() -> None:
    first = archive()
    archive.cache_clear()
    assert archive() == first
    assert first.digest == hashlib.sha256(first.content).hexdigest()


def test_the_file_holds_the_driver_the_child_and_the_kind_of_cpu() -> None:
    members = zipfile.ZipFile(io.BytesIO(archive().content))
    assert sorted(members.namelist()) == sorted([MODULE, CHILD, MACHINE])
    assert members.read(MODULE) == Path(_driver.__file__).read_bytes()
    assert members.read(MACHINE).decode() == platform.machine()


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriverOnHost:
    log_in_here(tmp_path, monkeypatch)
    install(NAME)
    return DriverOnHost(NAME)


def test_both_directions_are_told(driver: DriverOnHost) -> None:
    found = driver.bandwidth("127.0.0.1", round_trip_s=0.0)
    driver.close()
    assert found is not None
    # Loopback of any machine is faster than a network of 100 Mbit/s.
    assert min(found.to_server_bytes_per_s, found.from_server_bytes_per_s) > 12.5e6


def test_whoever_does_not_know_the_word_is_hung_up_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(1.0)
        with socket.create_connection(listener.getsockname()) as stranger:
            stranger.sendall(bytes(WORD_BYTES) * 1000)
            assert ssh._served(listener, bytes(range(WORD_BYTES)), TO_SERVER, 0.1) == 0.0


def test_a_load_host_that_does_not_come_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
    answer = carried(place, bytes(WORD_BYTES), TO_SERVER, 0.1)
    assert answer["error"]["kind"] == "connect" and "refused" in answer["error"]["message"]
