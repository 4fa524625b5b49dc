"""The databases that a store can be in."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.host import process
from dbdyno.records.store import Store

_INITDB = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL of this test's own, on a socket, as `nobody` where the test is root."""
    if _INITDB is None:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    user = (65534, 65534) if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="dyno-pg-") as name:
        folder = Path(name)
        if user:
            os.chown(folder, *user)
        initdb = [str(_INITDB), "-D", f"{folder}/data", "-U", "dyno", "--auth=trust", "--no-sync"]
        ids: dict[str, Any] = {"user": user[0], "group": user[1]} if user else {}
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **ids)
        command = [str(_INITDB.with_name("postgres")), "-D", f"{folder}/data", "-k", str(folder), "-h", ""]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=folder, preexec_fn=process.confine(), **ids
            )
        try:
            ready = [str(_INITDB.with_name("pg_isready")), "-h", str(folder), "-t", "20"]
            for _ in range(100):
                if subprocess.run(ready, capture_output=True, check=False).returncode == 0:
                    break
                time.sleep(0.1)
            yield f"postgresql://dyno@/postgres?host={folder}"
        finally:
            process.kill_family(server)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    found: str = request.getfixturevalue("postgresql")
    with Store(found) as store, store._transaction() as execute:
        for table in ("records", "names", "notes", "runs"):
            execute(f"DELETE FROM dyno_{table}")
    return found
