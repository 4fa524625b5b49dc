"""The databases that a store can be in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.records.store import Store
from tests.records.postgresql import INITDB, PostgreSQL


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL of this test's own."""
    if INITDB is None:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    with PostgreSQL() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    found: str = request.getfixturevalue("postgresql")
    with Store(found) as store, store._transaction() as execute:
        for table in ("records", "names", "notes", "runs", "chain"):
            execute(f"DELETE FROM dyno_{table}")
    return found
