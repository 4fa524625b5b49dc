"""A PostgreSQL that a fleet shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.fleet.session import Session
from dbdyno.records.store import Store
from tests.records.postgresql import INITDB, PostgreSQL


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    if INITDB is None:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    with PostgreSQL() as found:
        yield found


@pytest.fixture
def url(server: PostgreSQL, homes: Path) -> str:
    """A store without runs and hosts."""
    with Store(server.url) as store, store._transaction() as execute:
        for table in ("records", "names", "notes", "runs", "chain"):
            execute(f"DELETE FROM dyno_{table}")
    with Session(server.url) as opened:
        of_builds = ("builds", "build_runs", "build_failures", "build_makers")
        for table in ("hosts", "leases", "asked", "parts", "late", *of_builds):
            opened.execute(f"DELETE FROM dyno_{table}")
    return server.url


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    with Session(url) as opened:
        yield opened
