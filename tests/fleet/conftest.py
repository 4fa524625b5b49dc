"""A PostgreSQL that a fleet shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.fleet.session import Session
from dbdyno.records.store import Store
from tests.records.postgresql import PostgreSQL


@pytest.fixture
def url(store_server: PostgreSQL, homes: Path) -> str:
    """A store without runs and hosts."""
    with Store(store_server.url) as store, store._transaction() as execute:
        for table in ("records", "names", "notes", "runs", "chain"):
            execute(f"DELETE FROM dyno_{table}")
    with Session(store_server.url) as opened:
        of_builds = ("builds", "build_runs", "build_failures", "build_makers")
        for table in ("hosts", "leases", "asked", "parts", "late", *of_builds):
            opened.execute(f"DELETE FROM dyno_{table}")
    return store_server.url


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    with Session(url) as opened:
        yield opened
