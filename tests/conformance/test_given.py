"""Data that a study brings: dumps that the engines' own tools write, and folders of servers that stopped."""

from __future__ import annotations

import gzip
import lzma
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.mysql.server import SERVER as MYSQL
from dbdyno.engines.postgresql.server import SERVER
from dbdyno.engines.server import ACCOUNT, DATABASE, socket_of
from dbdyno.errors import UserError
from dbdyno.obtain.server import program
from dbdyno.prepare_run.study_here import given_mistakes
from dbdyno.study.nouns import GivenData, Reference
from tests.conformance.conftest import WAITS_FOR_NO_DISK, bench_for, obtain
from tests.given_data import (
    MARIADB_TOOLS,
    MYSQL_SHOP,
    POSTGRESQL_SHOP,
    mysql_options,
    run,
    study_with,
    tool_of,
    tried_with,
)

NAME = """Käse; 'Żółw' 🐢 \\ "q\""""


@dataclass
class Shop:
    """A stopped server with a shop in it: its folder, and dumps of it by name."""

    engine: str
    folder: Path
    dumps: dict[str, Path]


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Shop]:
    yield from _mysql_shop("mariadb", tmp_path_factory.mktemp("mariadb"), shelf)


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Shop]:
    yield from _mysql_shop("mysql", tmp_path_factory.mktemp("mysql"), shelf)


def _mysql_shop(engine: str, folder: Path, shelf: Path) -> Iterator[Shop]:
    with bench_for(engine, folder, shelf) as bench:
        bench.initialise()
        server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))
        client = (
            program(bench.installation, MYSQL.client, "mysql")
            if engine == "mysql"
            else tool_of(MARIADB_TOOLS, "mariadb")
        )
        dumper = (
            program(bench.installation, MYSQL.client, "mysqldump")
            if engine == "mysql"
            else tool_of(MARIADB_TOOLS, "mariadb-dump")
        )
        options = [*mysql_options(server.url), "--default-character-set=utf8mb4"]
        run([*client, *options, "--execute=CREATE DATABASE shop"])
        run([*client, *options, "shop"], MYSQL_SHOP)
        every = ["--routines", "--triggers", "--events"]
        plain, named = folder / "plain.sql", folder / "named.sql"
        run([*dumper, *options, *every, "shop"], into=plain)
        run([*dumper, *options, *every, "--databases", "shop", DATABASE], into=named)
        server.stop()
        yield Shop(engine, bench.data / "database", {"plain": plain, "named": named})


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("postgresql")
    with bench_for("postgresql", folder, shelf) as bench:
        bench.initialise()
        server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))
        options = [f"--host={socket_of(server.url).parent}", f"--username={ACCOUNT}"]

        def of(name: str) -> list[str]:
            return [*program(bench.installation, SERVER.client, name), *options]

        run([*of("psql"), "--command=CREATE DATABASE shop", DATABASE])
        run([*of("psql"), "--set=ON_ERROR_STOP=1", "shop"], POSTGRESQL_SHOP)
        dumps = {name: folder / name for name in ("plain", "named", "custom", "directory", "tar", "all")}
        run([*of("pg_dump"), "shop"], into=dumps["plain"])
        run([*of("pg_dump"), "--create", "shop"], into=dumps["named"])
        run([*of("pg_dump"), "--format=custom", "shop"], into=dumps["custom"])
        run([*of("pg_dump"), "--format=tar", "shop"], into=dumps["tar"])
        run([*of("pg_dump"), "--format=directory", f"--file={dumps['directory']}", "shop"])
        server.stop()
        yield Shop("postgresql", bench.data / "database", dumps)


def _loads(shop: Shop, data: GivenData, folder: Path) -> list[str]:
    """Has a trial bring the data; the server holds the whole shop. Returns what was told."""
    with tried_with(study_with(_same_version(shop.engine), data, folder)) as tried:
        [[name, picture]] = tried.ask("SELECT name, picture FROM articles WHERE id = 1")
        assert str(name).startswith(NAME)
        assert "00ff0a0d" in str(picture).lower()
        assert tried.ask("SELECT COUNT(*) FROM sold") == [[2]]
        tried.ask("CALL sell(2)")
        assert tried.ask("SELECT n FROM counts") == [[4]]
        return tried.told


def _same_version(engine: str) -> str:
    """The server that made the shop, by its version: another test may fetch another one meanwhile."""
    installation, reason = obtain(engine)
    if installation is None:
        pytest.skip(f"{engine} cannot be had here: {reason}")
    return f"{engine}@{installation.version}"


def _mistakes(shop: Shop, data: GivenData, folder: Path) -> list[str]:
    name, _, version = _same_version(shop.engine).partition("@")
    reference = Reference(name, version)
    installation = registry.engine(name).obtaining.locate(reference)
    return [f"{one.message}; {one.hint}" for one in given_mistakes(data, folder, installation, reference, ())]


@pytest.mark.parametrize("engine", ["mariadb", "mysql"])
def test_a_dump_with_delimiters_and_definers_loads_as_it_is(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    shop: Shop = request.getfixturevalue(engine)
    packed = tmp_path / "a-dump"
    packed.write_bytes(gzip.compress(shop.dumps["plain"].read_bytes()))
    told = _loads(shop, GivenData(dump=("a-dump",)), tmp_path)
    assert "accounts that nobody can use were made for definers: clerk@%" in told


def test_a_dump_that_names_its_database_is_loaded_there(mariadb: Shop, tmp_path: Path) -> None:
    packed = tmp_path / "named"
    packed.write_bytes(lzma.compress(mariadb.dumps["named"].read_bytes()))
    _loads(mariadb, GivenData(dump=("named",)), tmp_path)
    with pytest.raises(UserError, match="has no database `other` with tables: they hold shop"):
        _loads(mariadb, GivenData(dump=("named",), database="other"), tmp_path)


def test_a_dump_without_a_database_goes_where_the_study_says(mariadb: Shop, tmp_path: Path) -> None:
    data = GivenData(dump=(str(mariadb.dumps["plain"]),), database="elsewhere")
    with tried_with(study_with("mariadb", data, tmp_path)) as tried:
        assert tried.ask("SELECT DATABASE()") == [["elsewhere"]]
        assert tried.ask("SELECT COUNT(*) FROM elsewhere.articles") == [[2]]


@pytest.mark.parametrize("kind", ["plain", "named", "custom", "directory", "tar"])
def test_every_format_of_pg_dump_loads_with_owners_of_another_server(
    kind: str, postgresql: Shop, tmp_path: Path
) -> None:
    told = _loads(postgresql, GivenData(dump=(str(postgresql.dumps[kind]),)), tmp_path)
    assert any("roles that the dump takes for granted were made: clerk" in line for line in told)
    assert any("Odd Reader" in line for line in told)


@pytest.mark.parametrize("engine", ["mariadb", "mysql", "postgresql"])
def test_a_folder_of_a_stopped_server_is_copied_and_never_written(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    shop: Shop = request.getfixturevalue(engine)
    data = GivenData(folder=str(shop.folder))
    assert _mistakes(shop, data, tmp_path) == []
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in shop.folder.rglob("*")}
    _loads(shop, data, tmp_path)
    after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in shop.folder.rglob("*")}
    assert after == before


def test_what_a_client_refuses_is_told_with_its_line(mariadb: Shop, postgresql: Shop, tmp_path: Path) -> None:
    for shop, told in ((mariadb, "error in your SQL syntax"), (postgresql, "syntax error")):
        lines = shop.dumps["plain"].read_bytes().splitlines(keepends=True)
        place = tmp_path / shop.engine
        place.write_bytes(b"".join([*lines, b"CREATE TABEL x (id INT);\n"]))
        where = rf"{shop.engine}:{len(lines) + 1}: .*at `CREATE TABEL x"
        with pytest.raises(UserError, match=where) as raised:
            _loads(shop, GivenData(dump=(str(place),)), tmp_path)
        assert told in raised.value.message


@pytest.mark.parametrize("engine", ["mariadb", "mysql", "postgresql"])
def test_a_folder_of_a_server_that_runs_or_was_killed_is_refused(
    engine: str, tmp_path: Path, shelf: Path
) -> None:
    with bench_for(engine, tmp_path, shelf) as bench:
        bench.initialise()
        server = bench.start()
        ask = bench.ask(server)
        ask("CREATE TABLE articles (id INT PRIMARY KEY)")
        for row in range(20):
            ask(f"INSERT INTO articles VALUES ({row})")
        folder = bench.data / "database"
        data, shop = GivenData(folder=str(folder)), Shop(engine, folder, {})
        [running] = _mistakes(shop, data, tmp_path)
        assert f"belongs to a server that runs, process {server.process_ids[0]}" in running
        server.kill()
        if engine == "postgresql":
            [killed] = _mistakes(shop, data, tmp_path)
            assert "not of a server that was stopped cleanly: it was in use" in killed
            return
        assert _mistakes(shop, data, tmp_path) == []
        with pytest.raises(UserError, match=r"was not stopped cleanly: .*crash recovery"):
            _loads(shop, data, tmp_path)


def test_a_folder_of_another_kind_or_version_is_refused(
    mariadb: Shop, postgresql: Shop, tmp_path: Path
) -> None:
    swapped = Shop("mariadb", postgresql.folder, {})
    [told] = _mistakes(swapped, GivenData(folder=str(postgresql.folder)), tmp_path)
    assert "is no data folder of this engine: it holds no ibdata1" in told
    for place, name, text, found in (
        (mariadb, "mariadb_upgrade_info", "10.6.4-MariaDB", "is of MariaDB 10.6.4-MariaDB"),
        (postgresql, "PG_VERSION", "9.6\n", "is of PostgreSQL 9.6"),
    ):
        copied = tmp_path / place.engine
        shutil.copytree(place.folder, copied)
        (copied / name).write_text(text)
        [told] = _mistakes(place, GivenData(folder=str(copied)), tmp_path)
        assert found in told
    shutil.copy(postgresql.folder / "PG_VERSION", copied)
    (copied / "pg_tblspc/16400").symlink_to(tmp_path)
    [told] = _mistakes(postgresql, GivenData(folder=str(copied)), tmp_path)
    assert "is a link to" in told


def test_a_folder_of_mariadb_is_not_taken_for_one_of_mysql(mariadb: Shop, tmp_path: Path) -> None:
    [told] = _mistakes(Shop("mysql", mariadb.folder, {}), GivenData(folder=str(mariadb.folder)), tmp_path)
    assert 'is it engine = "mariadb"?' in told


def test_a_dump_of_another_engine_or_of_none_is_refused(
    mariadb: Shop, postgresql: Shop, tmp_path: Path
) -> None:
    def told(engine: str, place: Path) -> str:
        [mistake] = _mistakes(Shop(engine, place, {}), GivenData(dump=(str(place),)), tmp_path)
        return mistake

    custom, plain = postgresql.dumps["custom"], mariadb.dumps["plain"]
    assert "is a dump of PostgreSQL, and the study's engine is MariaDB" in told("mariadb", custom)
    assert "is a dump of MariaDB, and the study's engine is PostgreSQL" in told("postgresql", plain)
    (tmp_path / "picture.sql").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert "is in no format that is known here" in told("mariadb", tmp_path / "picture.sql")
    assert "there is no" in told("mariadb", tmp_path / "missing.sql")
    (tmp_path / "cut.sql.gz").write_bytes(gzip.compress(plain.read_bytes())[:-200])
    assert "cannot be read to its end" in told("mariadb", tmp_path / "cut.sql.gz")


def test_an_sqlite_database_is_taken_by_its_dump_and_by_its_file(tmp_path: Path) -> None:
    original = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(original)) as made:
        made.execute("PRAGMA journal_mode = wal")
        made.executescript(
            "CREATE TABLE articles (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, picture BLOB);"
            "INSERT INTO articles (name, picture) VALUES ('a;\n''b'' 🐢', x'00ff'), ('c', NULL);"
            "CREATE TRIGGER t AFTER DELETE ON articles BEGIN SELECT 1; SELECT 2; END;"
        )
        made.execute("DELETE FROM articles WHERE id = 2")
        made.execute("INSERT INTO articles (name) VALUES ('d')")
        made.commit()
        shop = Shop("sqlite", original, {})
        [told] = _mistakes(shop, GivenData(folder=str(original)), tmp_path)
        assert "was not closed cleanly" in told
        (tmp_path / "dump.sql").write_text("\n".join(made.iterdump()) + "\n")
    for data in (GivenData(dump=("dump.sql",)), GivenData(folder="shop.sqlite")):
        assert _mistakes(shop, data, tmp_path) == []
        with tried_with(study_with("sqlite", data, tmp_path)) as tried:
            assert tried.ask("SELECT id, name FROM articles") == [[1, "a;\n'b' 🐢"], [3, "d"]]
            assert tried.ask("PRAGMA journal_mode") == [["delete"]]
    (tmp_path / "dump.sql").write_text(
        "BEGIN TRANSACTION;\nCREATE TABLE a (b);\nINSERT INTO nowhere\nVALUES (1);\n"
    )
    broken = study_with("sqlite", GivenData(dump=("dump.sql",)), tmp_path)
    with pytest.raises(UserError) as raised, tried_with(broken):
        pass
    assert raised.value.message.endswith("dump.sql:3: no such table: nowhere, at `INSERT INTO nowhere`")
    [told] = _mistakes(shop, GivenData(dump=("shop.sqlite",)), tmp_path)
    assert "is a database and no dump" in told


def test_a_firebird_database_is_taken_by_its_file(tmp_path: Path, shelf: Path) -> None:
    with bench_for("firebird", tmp_path, shelf) as bench:
        bench.initialise()
        server = bench.start()
        ask = bench.ask(server)
        ask("CREATE TABLE articles (id INT PRIMARY KEY, name VARCHAR(20))")
        ask("INSERT INTO articles VALUES (1, 'a')")
        ask("INSERT INTO articles VALUES (2, 'b')")
        server.stop()
        file = Path(shutil.copy(bench.data / "dyno.fdb", tmp_path / "shop.fdb"))
    shop = Shop("firebird", file, {})
    assert _mistakes(shop, GivenData(folder=str(file)), tmp_path) == []
    with tried_with(study_with("firebird", GivenData(folder=str(file)), tmp_path)) as tried:
        assert tried.ask("SELECT COUNT(*) FROM articles") == [[2]]
    [told] = _mistakes(shop, GivenData(dump=(str(file),)), tmp_path)
    assert "in no format" in told


def test_what_this_server_does_not_know_is_done_without(postgresql: Shop, tmp_path: Path) -> None:
    text = postgresql.dumps["named"].read_text()
    assert "SET lock_timeout = 0;\n" in text and "LOCALE = 'C'" in text
    text = text.replace("SET lock_timeout = 0;\n", "SET lock_timeout = 0;\nSET transaction_timeout = 0;\n")
    text = text.replace("LOCALE = 'C'", "LOCALE = 'xx_YY.UTF-8'")
    (tmp_path / "dump").write_text(text)
    told = _loads(postgresql, GivenData(dump=("dump",)), tmp_path)
    version = _same_version("postgresql").partition("@")[2]
    left_out = any("`SET transaction_timeout` was left out" in line for line in told)
    assert left_out is (int(version.split(".")[0]) < 17), "PostgreSQL 17 knows it"
    assert any("its own locale is not on this machine" in line for line in told)


def test_the_database_is_named_where_a_dump_holds_several(mariadb: Shop, tmp_path: Path) -> None:
    text = mariadb.dumps["named"].read_text(errors="surrogateescape")
    more = "CREATE DATABASE `second`;\nUSE `second`;\nCREATE TABLE articles (id INT);\n"
    (tmp_path / "dump").write_text(text + more, errors="surrogateescape")
    with pytest.raises(UserError, match="holds 2 databases: second, shop") as raised:
        _loads(mariadb, GivenData(dump=("dump",)), tmp_path)
    assert 'database = "second"' in raised.value.hint
    _loads(mariadb, GivenData(dump=("dump",), database="shop"), tmp_path)
