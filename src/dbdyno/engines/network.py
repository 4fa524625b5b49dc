"""A server that another host reaches for one trial: where it listens, and for whom.

The account is made anew for each trial, in its copy of the data. It has a random password, which nobody but
the load host is told. What Dyno itself asks goes over the socket, as always.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from dbdyno.errors import UserError, remedy
from dbdyno.frozen import Level

LOAD_ACCOUNT = "dyno_load"
PASSWORD_BYTES = 24
DAYS = 7
"""How long a certificate is valid: longer than any trial takes."""


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: the certificate that a server shows, and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Listening:
    """Where a server listens beside its socket, and the password of the account that may come in there. With
    a certificate it lets nobody in without encryption."""

    address: str
    port: int
    password: str
    certificate: Certificate | None

    def url(self, local: str) -> str:
        """The URL by which the load reaches the database that `local` reaches over the socket."""
        parts = urlsplit(local)
        host = f"[{self.address}]" if ":" in self.address else self.address
        place = f"{LOAD_ACCOUNT}:{quote(self.password, safe='')}@{host}:{self.port}"
        return parts._replace(netloc=place, query="").geturl()


class Network(Protocol):
    """How a server of an engine listens on a network."""

    def settings(self, listening: Listening, runtime: Path) -> Mapping[str, Level]:
        """What the server is started with beside the study's settings. It may write files into `runtime`."""
        ...

    def account(self, listening: Listening, version: str, database: str) -> Sequence[str]:
        """The statements that make the account of the load, which may read and write that database alone.
        None of them holds its password in clear text. Raises UserError for a version that has no such
        rights."""
        ...


def listening_at(address: str, encrypted: bool, runtime: Path) -> Listening:
    """A free port of an address of this host, with a password and, where it is to be encrypted, a certificate
    in `runtime`. Raises UserError for an address that is none of this host's."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    certificate = _certificate(address, runtime) if encrypted else None
    return Listening(address, free_port(address), password, certificate)


def free_port(address: str) -> int:
    """A port of this address on which nobody listens now. Raises UserError where the address is none of this
    host's."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise UserError(
                f"this host cannot listen on {address}: {error.strerror}",
                "name an address of this host that the load host reaches: ip address shows them",
            ) from None
        port: int = probe.getsockname()[1]
        return port


def _certificate(address: str, runtime: Path) -> Certificate:
    """A certificate for the address that is its own authority. Raises UserError where it cannot be made."""
    made = Certificate(runtime / "network.crt", runtime / "network.key")
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-days", str(DAYS), "-subj", "/CN=dyno", "-addext", f"subjectAltName=IP:{address}"),
        *("-keyout", str(made.key), "-out", str(made.certificate)),
    ]
    hint = 'install openssl, or write network = "private" where nobody else is on the network'
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise UserError(f"openssl cannot be started: {error.strerror}", remedy(error, hint)) from None
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise UserError(f"openssl could not make a certificate: {last[0]}", hint)
    made.key.chmod(0o600)
    return made
