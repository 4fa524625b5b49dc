"""OpenSSH's client: how it is called, and what its failures mean to a user.

By it goes the one file that a load host needs, known by its hash, and how much the network carries in each
direction is tried.

The load host connects to a socket of this moment at the server's address, and says a word that nobody else
knows. Whoever receives reads for a while, counts what comes in the second half, when TCP has found its pace,
and closes. Nothing is timed meanwhile.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import secrets
import shlex
import socket
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.driver import _driver, child
from dbdyno.driver.link import Bandwidth
from dbdyno.driver.load_process import Conversation
from dbdyno.driver.remote import boot
from dbdyno.driver.remote.boot import (
    CHILD,
    CHUNK,
    FROM_SERVER,
    MACHINE,
    MODULE,
    TO_SERVER,
    WORD_BYTES,
    sent,
    taken,
)
from dbdyno.errors import DriverFailed, LoadDied

LEAST_S, MOST_S, TRIPS = 0.1, 2.0, 20
"""How long one direction takes: as long as so many round trips, within these bounds."""
WAIT_S = 10.0


def bandwidth(address: str, round_trip_s: float, load_host: Conversation) -> Bandwidth | None:
    """What the network carries to and from `address`, which is one of this host. None where the load host
    does not reach that socket: a firewall may pass the server's alone."""
    seconds = min(MOST_S, max(LEAST_S, TRIPS * round_trip_s))
    word = secrets.token_bytes(WORD_BYTES)
    found = {}
    with socket.create_server((address, 0)) as listener:
        listener.settimeout(WAIT_S)
        port = listener.getsockname()[1]
        for way in (TO_SERVER, FROM_SERVER):
            told = {"address": address, "port": port, "word": word.hex(), "way": way, "s": seconds}
            load_host.request(verb="carry", **told)
            here = _served(listener, word, way, seconds)
            try:
                reply = load_host.answer("carry", WAIT_S + MOST_S)["reply"]
            except DriverFailed as refused:
                if refused.kind != "connect":
                    raise
                return None
            found[way] = here if way == TO_SERVER else reply["bytes_per_s"]
    return Bandwidth(to_server_bytes_per_s=found[TO_SERVER], from_server_bytes_per_s=found[FROM_SERVER])


def _served(listener: socket.socket, word: bytes, way: str, seconds: float) -> float:
    """One direction, for whoever says the word; any other is hung up on. Gives what came, in bytes per
    second; 0 where it was sent. A load host that does not come says why in its answer."""
    with suppress(TimeoutError):
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(WAIT_S)
                if not secrets.compare_digest(_first(peer), word):
                    continue
                if way == TO_SERVER:
                    return taken(peer, seconds)
                sent(peer, bytes(CHUNK))
                return 0.0
    return 0.0


def _first(peer: socket.socket) -> bytes:
    """The first bytes that a peer says, as many as a word has."""
    try:
        return peer.recv(WORD_BYTES, socket.MSG_WAITALL)
    except OSError:
        return b""


EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that an archive can hold: the same driver makes the same file, whenever it is made."""


@dataclass(frozen=True)
class DriverArchive:
    """The file's bytes, and their SHA-256 in hexadecimal digits."""

    content: bytes
    digest: str


@cache
def archive() -> DriverArchive:
    """The file of the driver that this process has loaded."""
    members = {
        MACHINE: platform.machine().encode(),
        CHILD: Path(child.__file__).read_bytes(),
        MODULE: Path(_driver.__file__).read_bytes(),
    }
    written = io.BytesIO()
    # Not packed, because another version of the packer would give the same driver another hash.
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name, EPOCH), content)
    content = written.getvalue()
    return DriverArchive(content, hashlib.sha256(content).hexdigest())


VARIABLE = "DYNO_SSH"
"""The command that logs in, with options of the user's own: `ssh -F /path/of/a/config`."""
ALIVE_S, ALIVE_COUNT = 5, 3
"""How often the client asks whether the other side is there, and how often no answer may come."""
CONNECT_S = 15
START_TIMEOUT_S = 60.0
FAILED = 255
"""What the client ends with where the connection failed, and not the command."""
NO_PYTHON = 97
OPTIONS: Mapping[str, object] = {
    # Nobody is there who could type a password.
    "BatchMode": "yes",
    "ConnectTimeout": CONNECT_S,
    "ServerAliveInterval": ALIVE_S,
    "ServerAliveCountMax": ALIVE_COUNT,
    "ClearAllForwardings": "yes",
}
PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")
"""Names of an interpreter, of which the first takes the driver that is 3.11 or later."""
INSTALL = "dyno fleet driver install"
REFUSALS: Mapping[str, tuple[str, str]] = {
    "absent": ("the driver of this Dyno is not on {host}", "copy it there: " + INSTALL + " {host}"),
    "changed": (
        "the driver's file on {host} is not what was copied there: {detail}",
        "somebody changed it: find out who, then copy it again: " + INSTALL + " {host}",
    ),
    "machine": (
        "{host} has CPUs of another kind: {detail}",
        "take a host with the same kind, or install Dyno for that kind here",
    ),
    "load": (
        "the driver cannot be loaded on {host}: {detail}",
        "its system is older than the driver allows: take a host with a later C library",
    ),
    "disk": (
        "{host} cannot keep the driver's file: {detail}",
        "make room there, or let its user write there",
    ),
    "hidden": (
        "{host} does not show what its kernel counts: {detail}",
        "let the user of `ssh {host}` read that file: a container or a sandbox may hide it",
    ),
    "torn": ("the driver's file did not arrive whole on {host}: {detail}", "try again"),
}
"""What a load host can refuse, in a message and a hint."""
COMPLAINTS: tuple[tuple[str, str, str], ...] = (
    (
        "could not resolve hostname",
        "the host {host} is not known",
        "write the name by which `ssh {host}` reaches it, or add it to ~/.ssh/config",
    ),
    (
        "host key verification failed",
        "the key of {host} is not known here",
        "log in once by hand and accept it: ssh {host}",
    ),
    (
        "permission denied",
        "{host} lets nobody in without a password",
        "let a key in that needs no typing: ssh-copy-id {host}",
    ),
    (
        "connection refused",
        "{host} does not answer SSH",
        "start sshd there, or mend its port in ~/.ssh/config",
    ),
    ("timed out", "{host} does not answer SSH", "look at its firewall and at the way to it: ssh {host}"),
    ("no route to host", "{host} does not answer SSH", "look at the way to it: ssh {host}"),
)
"""What the client says where it does not get in, in lower case, and what that means."""


def command(host: str, text: str) -> list[str]:
    """The client's command that runs a program on a host: `text`, which is sent as its first input."""
    read = f"import sys; exec(sys.stdin.buffer.read({len(text.encode())}))"
    probe = "import sys; sys.exit(sys.version_info < (3, 11))"
    loop = (
        f"for python in {' '.join(PYTHONS)}; do"
        f' if "$python" -c {shlex.quote(probe)} </dev/null 2>/dev/null; then exec "$python" -P -c'
        f" {shlex.quote(read)}; fi; done; exit {NO_PYTHON}"
    )
    return on_host(host, loop)


def on_host(host: str, script: str) -> list[str]:
    """The client's command that runs a script of the shell on a host."""
    options = [part for name, value in OPTIONS.items() for part in ("-o", f"{name}={value}")]
    # The login shell may be of any kind, and all kinds know these quotes.
    return [*client(), "-T", "-a", "-x", *options, "--", host, f"exec sh -c {shlex.quote(script)}"]


def client() -> list[str]:
    """The user's own command that logs in, else `ssh`."""
    return shlex.split(os.environ.get(VARIABLE, "")) or ["ssh"]


def program(call: str) -> str:
    """The text of `boot.py` that ends with a call of one of its functions."""
    return f"{Path(boot.__file__).read_text(encoding='utf-8')}\n{call}\n"


def refused(host: str, answer: Mapping[str, str]) -> DriverFailed:
    """A host's own refusal, as `boot.py` says it."""
    message, hint = REFUSALS[answer["refused"]]
    told = {"host": host, "detail": answer["detail"]}
    return DriverFailed(message.format(**told), hint.format(**told))


def not_reached(host: str, code: int, said: str) -> DriverFailed:
    """Why a program on a host did not begin: the client's exit code, and its last words."""
    if code == NO_PYTHON:
        return DriverFailed(
            f"{host} has no Python 3.11 or later that its user finds",
            f"install python3 there, or look at the PATH of `ssh {host} env`",
        )
    known = next((found for found in COMPLAINTS if found[0] in said.lower()), None)
    words = said.splitlines()[-1].strip() if said else f"ssh ended with exit code {code}"
    if known is None:
        return DriverFailed(f"no driver began on {host}: {words}", f"try it by hand: ssh {host}")
    _, message, hint = known
    return DriverFailed(f"{message.format(host=host)}: {words}", hint.format(host=host))


def lost(host: str, verb: str, code: int, said: str) -> DriverFailed:
    """Why a driver that had begun is gone."""
    if code == FAILED and said:
        return LoadDied(
            f"the connection to {host} was lost during `{verb}`: {said.splitlines()[-1].strip()}",
            f"look at the network and at sshd there: ssh {host}",
        )
    if code == FAILED:
        # The client says nothing where a signal ended the program.
        return LoadDied(
            f"the driver on {host} was killed during `{verb}`",
            f"look at the log of {host}: its kernel kills what takes too much memory",
        )
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    last_line = f"; it said: {said.splitlines()[-1]}" if said else ""
    return LoadDied(
        f"the driver on {host} died during `{verb}` ({how}){last_line}", f"look at the log of {host}"
    )
