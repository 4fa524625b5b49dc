"""A PostgreSQL of a test's own, on a socket, as `nobody` where the test is root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.needs import INITDB, IS_ROOT

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SELF_SIGNED = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")


class PostgreSQL:
    """A server that can start again. A context manager: it and its data are gone at the end.

    With an `address` it listens there too, for those alone who encrypt and know the `password`. `certificate`
    is then the file of its certificate. What `enters` a namespace stands before its commands. `settings` are
    lines of its configuration."""

    def __init__(
        self, address: str = "", password: str = "", enters: Sequence[str] = (), settings: str = ""
    ) -> None:
        self._address, self._password, self._settings = address, password, settings
        self._enters = list(enters)
        self._kept = tempfile.TemporaryDirectory(prefix="dyno-pg-")
        self._folder = Path(self._kept.name)
        self._ids: dict[str, Any] = {"user": 65534, "group": 65534} if IS_ROOT else {}
        self.url = f"postgresql://dyno@/postgres?host={self._folder}"

    @property
    def certificate(self) -> Path:
        return self._folder / "certificate"

    def __enter__(self) -> PostgreSQL:
        if self._ids:
            os.chown(self._folder, 65534, 65534)
        self._run("initdb", "-U", "dyno", "--auth=trust", "--no-sync")
        with (self._folder / "data" / "postgresql.conf").open("a") as configuration:
            configuration.write(self._settings)
        if self._address:
            self._certify()
        self._control("start")
        if self._password:
            with psycopg.connect(self.url) as session:
                session.execute(
                    sql.SQL("ALTER USER dyno PASSWORD {password}").format(
                        password=sql.Literal(self._password)
                    )
                )
        return self

    def __exit__(self, *_: object) -> None:
        self._control("stop")
        self._kept.cleanup()

    def restart(self) -> None:
        """Ends the server without a checkpoint, and starts it: it recovers from its log."""
        self._control("restart")

    def _control(self, what: str) -> None:
        how = () if what == "start" else ("-m", "immediate")
        options = (
            ()
            if what == "stop"
            else ("-o", f"-k {self._folder} -h '{self._address}'", "-l", str(self._folder / "log"))
        )
        self._run("pg_ctl", what, "-w", *how, *options)

    def _certify(self) -> None:
        """Has the server encrypt on its address, with a certificate of its own that names it."""
        written = ("-keyout", str(self._folder / "key"), "-out", str(self.certificate))
        names = ("-subj", f"/CN={self._address}", "-addext", f"subjectAltName=IP:{self._address}")
        self._call([*SELF_SIGNED, *names, *written])
        data = self._folder / "data"
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"ssl = on\nssl_cert_file = '{self.certificate}'\nssl_key_file = '{self._folder}/key'\n"
            )
        with (data / "pg_hba.conf").open("a") as accounts:
            accounts.write("hostssl all all 0.0.0.0/0 scram-sha-256\n")

    def _run(self, program: str, *words: str) -> None:
        assert INITDB is not None
        self._call([str(INITDB.with_name(program)), "-D", str(self._folder / "data"), *words])

    def _call(self, command: list[str]) -> None:
        ids = self._ids
        if self._enters:
            # Only root enters, so the other user comes after that.
            command = [*self._enters, *AS_NOBODY, *command]
            ids = {}
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **ids)
