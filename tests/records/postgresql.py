"""A PostgreSQL of a test's own, on a socket, as `nobody` where the test is root."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

INITDB = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)


class PostgreSQL:
    """A server that can start again. A context manager: it and its data are gone at the end."""

    def __init__(self) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="dyno-pg-")
        self._folder = Path(self._kept.name)
        self._ids: dict[str, Any] = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        self.url = f"postgresql://dyno@/postgres?host={self._folder}"

    def __enter__(self) -> PostgreSQL:
        if self._ids:
            os.chown(self._folder, 65534, 65534)
        self._run("initdb", "-U", "dyno", "--auth=trust", "--no-sync")
        self._control("start")
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
            () if what == "stop" else ("-o", f"-k {self._folder} -h ''", "-l", str(self._folder / "log"))
        )
        self._run("pg_ctl", what, "-w", *how, *options)

    def _run(self, program: str, *words: str) -> None:
        assert INITDB is not None
        command = [str(INITDB.with_name(program)), "-D", str(self._folder / "data"), *words]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._ids)
