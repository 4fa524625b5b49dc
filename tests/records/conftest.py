"""The databases that a store can be in."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.records.store import Store
from tests.records.postgresql import PostgreSQL


@pytest.fixture(scope="module")
def postgresql(store_server: PostgreSQL) -> str:
    """The URL of a PostgreSQL of this test's own."""
    return store_server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    found: str = request.getfixturevalue("postgresql")
    with Store(found) as store, store._transaction() as execute:
        for table in ("records", "names", "notes", "runs", "chain"):
            execute(f"DELETE FROM dyno_{table}")
    return found
