"""How PostgreSQL listens on a network for one trial."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.engines.network import LOAD_ACCOUNT, Listening
from dbdyno.engines.server import ACCOUNT
from dbdyno.errors import UserError
from dbdyno.frozen import Level

ITERATIONS = 4096
"""PostgreSQL's own number (scram-common.h)."""
OLDEST = 14
"""The first version with a role that may write all data and is no superuser."""


def settings(listening: Listening, runtime: Path) -> Mapping[str, Level]:
    """Whoever comes by the socket needs no password, as always, because its folder is private."""
    access = runtime / "network_hba.conf"
    how = "hostssl" if listening.certificate else "host"
    everywhere = [f"{how} all {LOAD_ACCOUNT} {network} scram-sha-256" for network in ("0.0.0.0/0", "::/0")]
    access.write_text("\n".join([f"local all {ACCOUNT} trust", *everywhere, ""]))
    given: dict[str, Level] = {
        "listen_addresses": listening.address,
        "port": listening.port,
        "hba_file": str(access),
    }
    if listening.certificate:
        given |= {
            "ssl": True,
            "ssl_cert_file": str(listening.certificate.certificate),
            "ssl_key_file": str(listening.certificate.key),
        }
    return given


def account(listening: Listening, version: str, database: str) -> Sequence[str]:
    """The roles are of all databases, of which the server has one with data."""
    major = re.match(r"\d+", version)
    if major is None or int(major[0]) < OLDEST:
        raise UserError(
            f"PostgreSQL {version} has no account that writes data and is no superuser",
            f"take PostgreSQL {OLDEST} or later, or leave [driver] out",
        )
    return (
        f"CREATE ROLE {LOAD_ACCOUNT} LOGIN PASSWORD '{verifier(listening.password, os.urandom(16))}'",
        f"GRANT pg_read_all_data, pg_write_all_data TO {LOAD_ACCOUNT}",
    )


def verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL keeps of a password in ASCII (RFC 5803, from the keys of RFC 5802)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored, server = hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256")
    parts = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${ITERATIONS}:{parts[0]}${parts[1]}:{parts[2]}"
