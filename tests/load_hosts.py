"""Other hosts for tests: one that is only told of, one that is this host behind a login, and one in a network
namespace of its own, which a real sshd lets in."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dbdyno.driver.link import LinkReading, LoadHost, RoundTrips
from dbdyno.driver.remote.ssh import VARIABLE
from tests.needs import IS_ROOT, SSHD, on_machine

PORT = 2222
NAME, OTHER_NAME = "load1", "load2"
"""Two names of one host: it does not know how many drivers it has."""
READY_S = 20.0

HERE = """\
#!/bin/sh
# Logs in on this host: the command is the last argument.
for command in "$@"; do :; done
export HOME="{home}"
{before}
exec sh -c "$command"
"""


def reading(median_us: float = 100.0, within_us: float = 50.0, offset_s: float = 0.25) -> LinkReading:
    """A link on which the longest round trip takes twice the median."""
    trips = RoundTrips(count=9, min_s=median_us / 2e6, median_s=median_us / 1e6, max_s=median_us / 5e5)
    return LinkReading(
        unix_s=1.0,
        moment="before",
        network=trips,
        control=trips,
        clock_offset_s=offset_s,
        clock_within_s=within_us / 1e6,
    )


def make_load_host(**changes: Any) -> LoadHost:
    """A host with 4 CPUs, a quarter of which were busy for 10 s, all with the driver."""
    given = {
        "name": NAME,
        "address": "10.0.0.1",
        "encrypted": False,
        "driver": "d" * 64,
        "machine": "x86_64",
        "kernel": "6.12",
        "cpu": "some",
        "cpus": 4,
        "python": "3.11.2",
        "load_s": 10.0,
        "busy_s": 10.0,
        "steal_s": 0.0,
        "driver_s": 10.0,
        "segments_sent": 9_990.0,
        "segments_resent": 10.0,
        "readings": (reading(),),
    }
    return LoadHost(**{**given, **changes})


def log_in_here(folder: Path, patch: pytest.MonkeyPatch, before: str = "") -> Path:
    """Has whoever logs in arrive on this host, with a home in the folder. `before` is done there first. Gives
    that home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    script = folder / "login"
    script.write_text(HERE.format(home=home, before=before))
    script.chmod(0o755)
    patch.setenv(VARIABLE, str(script))
    return home


@dataclass(frozen=True)
class Apart:
    """A load host in a namespace of the network. `address` is the one of this host that it reaches, `home`
    that of its user, and `device` this side's end of the cable."""

    namespace: str
    address: str
    home: Path
    device: str
    sshd: subprocess.Popen[bytes]

    def within(self, *command: str) -> list[str]:
        """A command as it runs in the namespace."""
        return ["ip", "netns", "exec", self.namespace, *command]


@contextmanager
def apart(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Apart]:
    """A load host with a network of its own. Skips the test where there can be none."""
    if not IS_ROOT:
        pytest.skip("needs root")
    if not (SSHD.exists() and on_machine("ssh") and on_machine("ip")):
        pytest.skip("needs sshd, ssh and ip: apt install openssh-server openssh-client iproute2")
    name = f"dyno{secrets.token_hex(3)}"
    # RFC 2544 keeps these addresses for measurements.
    network = f"198.18.{secrets.randbelow(256)}"
    here, there = f"{network}.1", f"{network}.2"
    with ExitStack() as undo:
        _ip("netns", "add", name)
        undo.callback(_ip, "netns", "del", name)
        _ip("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        _ip("address", "add", f"{here}/30", "dev", f"{name}a")
        _ip("link", "set", f"{name}a", "up")
        _ip("-n", name, "address", "add", f"{there}/30", "dev", f"{name}b")
        _ip("-n", name, "link", "set", f"{name}b", "up")
        home = folder / "home"
        home.mkdir()
        sshd = undo.enter_context(_sshd(folder, name, there, home))
        patch.setenv(VARIABLE, f"ssh -F {folder / 'ssh_config'}")
        _until_it_answers(folder)
        yield Apart(name, here, home, f"{name}a", sshd)


@contextmanager
def _sshd(folder: Path, namespace: str, address: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    public = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[{address}]:{PORT} {public[0]} {public[1]}\n")
    (folder / "sshd_config").write_text(
        f"ListenAddress {address}:{PORT}\nHostKey {folder / 'host'}\nPidFile none\nUsePAM no\n"
        f"StrictModes no\nAuthorizedKeysFile {folder / 'authorized'}\nPermitRootLogin prohibit-password\n"
        f"SetEnv HOME={home}\n"
    )
    (folder / "ssh_config").write_text(
        f"Host {NAME} {OTHER_NAME}\n  HostName {address}\n  Port {PORT}\n  User root\n"
        f"  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder / 'known'}\n"
    )
    # Debian's package makes it when its service starts.
    Path("/run/sshd").mkdir(exist_ok=True)
    command = ["ip", "netns", "exec", namespace, str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "sshd.log").open("wb") as log:
        sshd = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield sshd
    finally:
        sshd.kill()
        sshd.wait()


def _until_it_answers(folder: Path) -> None:
    deadline = time.monotonic() + READY_S
    command = ["ssh", "-F", str(folder / "ssh_config"), "-o", "BatchMode=yes", NAME, "true"]
    while (done := subprocess.run(command, capture_output=True, text=True)).returncode != 0:
        if time.monotonic() > deadline:
            log = (folder / "sshd.log").read_text(errors="replace")
            raise AssertionError(f"sshd lets nobody in: {done.stderr}{log}")
        time.sleep(0.1)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a network namespace is refused here: {done.stderr.strip()}")
