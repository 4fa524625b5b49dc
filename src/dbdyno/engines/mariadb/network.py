"""How MariaDB listens on a network for one trial."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.engines.network import LOAD_ACCOUNT, Listening
from dbdyno.frozen import Level


def settings(listening: Listening, runtime: Path) -> Mapping[str, Level]:
    given: dict[str, Level] = {
        "skip_networking": False,
        "bind_address": listening.address,
        "port": listening.port,
    }
    if listening.certificate:
        given |= {
            "ssl_cert": str(listening.certificate.certificate),
            "ssl_key": str(listening.certificate.key),
        }
    return given


def account(listening: Listening, version: str, database: str) -> Sequence[str]:
    encrypted = " REQUIRE SSL" if listening.certificate else ""
    how = f"IDENTIFIED VIA mysql_native_password USING '{verifier(listening.password)}'"
    quoted = database.replace("`", "``")
    return (
        f"CREATE USER {LOAD_ACCOUNT}@'%' {how}{encrypted}",
        f"GRANT ALL PRIVILEGES ON `{quoted}`.* TO {LOAD_ACCOUNT}@'%'",
    )


def verifier(password: str) -> str:
    """What MariaDB keeps of a password for mysql_native_password: SHA-1 of its SHA-1."""
    return f"*{hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()}"
