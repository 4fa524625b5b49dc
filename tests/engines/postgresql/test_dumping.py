"""Data that a version of PostgreSQL takes over by a dump, as it does where `pg_upgrade` has not its tools."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.driver.passwords import query
from dbdyno.engines.postgresql import server as life
from dbdyno.engines.postgresql.data import lacking
from dbdyno.engines.postgresql.dumping import clients, dump_and_restore
from dbdyno.engines.postgresql.server import SERVER
from dbdyno.errors import ServerFailed
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from tests.needs import skip_blocked

SHOP = (
    "CREATE ROLE clerk",
    "CREATE TABLE kept (a BIGINT PRIMARY KEY, said TEXT)",
    "INSERT INTO kept SELECT one, 'it''s ' || one FROM generate_series(1, 1000) one",
    "ALTER TABLE kept OWNER TO clerk",
)
HELD_BY_ANOTHER = (
    "CREATE FUNCTION is_kept(one BIGINT) RETURNS BOOLEAN LANGUAGE sql"
    " AS 'SELECT EXISTS (SELECT 1 FROM public.kept WHERE a = one)'",
    "CREATE TABLE asked (a BIGINT CHECK (public.is_kept(a)))",
    "INSERT INTO asked VALUES (7)",
)
"""A dump loads tables by their names, so this one's check meets a table that is still empty."""


@pytest.fixture
def own(homes_with_engines: Path) -> Installation:
    """A server that has the clients of its own version. Those of npm have none."""
    here = [*SERVER.copies(), *SERVER.of_host()]
    found = next((one for one in here if clients(one, one) is not None), None)
    if found is None:
        skip_blocked("no server with clients of its own version", "apt install postgresql")
    return found


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="dyno-") as name:
        yield Path(name)


def made(own: Installation, data: Path, runtime: Path, statements: tuple[str, ...]) -> None:
    life.initialise(own, data, {})
    server = life.start(own, data, runtime, {}, Launch())
    for statement in statements:
        query(server.url, statement)
    server.stop(60)


def test_rows_roles_and_owners_come_through_a_dump(own: Installation, runtime: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    made(own, data, runtime, SHOP)
    said = dump_and_restore(own, own, data, runtime, {})
    assert said.startswith("pg_dumpall and psql ") and not {"before", "fresh"} & {
        one.name for one in data.iterdir()
    }
    server = life.start(own, data, runtime, {}, Launch())
    [kept] = query(server.url, "SELECT count(*), sum(a), min(said) FROM kept")
    owner = query(server.url, "SELECT tableowner FROM pg_tables WHERE tablename = 'kept'")
    server.stop(60)
    assert [float(kept[0] or 0), float(kept[1] or 0), kept[2]] == [1000, 500_500, "it's 1"]
    assert owner == [["clerk"]]


def test_a_statement_that_is_refused_is_named(own: Installation, runtime: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    made(own, data, runtime, (*SHOP, *HELD_BY_ANOTHER))
    with pytest.raises(ServerFailed, match='psql could not restore the dump: new row for relation "asked"'):
        dump_and_restore(own, own, data, runtime, {})
    for name in ("old", "new"):
        assert not list((runtime / name).glob(".s.PGSQL.*")), "no server is left"


def test_a_dump_goes_to_its_own_version_or_a_later_one(own: Installation) -> None:
    before, after = replace(own, version="1.4"), replace(own, version="99.1")
    assert clients(before, after) is not None
    assert clients(before, replace(own, version="2.0")) is None
    assert clients(after, replace(own, version="100.0")) is None
    refused = lacking(before, replace(own, version="2.0"))
    assert refused is not None and "pg_dump, psql of one version from 1 to 2" in refused.message
