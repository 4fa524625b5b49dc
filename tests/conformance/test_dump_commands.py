"""The commands of clients' own that a dump holds: none of them runs a program, reads or writes a file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.engines.mariadb.server import SERVER as MARIADB
from dbdyno.engines.mysql.server import SERVER as MYSQL
from dbdyno.engines.postgresql.data import require_dump
from dbdyno.engines.postgresql.server import SERVER as POSTGRESQL
from dbdyno.errors import EngineMissing, UserError
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import program
from dbdyno.user_data.dump import dump_at
from tests.conformance.conftest import WAITS_FOR_NO_DISK, bench_for
from tests.given_data import mysql_options


@dataclass
class Loading:
    """A server that runs, and a way to load dumps into it."""

    load: Callable[..., list[str]]
    ask: Callable[[str], list[list[str | float | None]]]
    client: list[str]


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Loading]:
    with _loading("postgresql", tmp_path_factory.mktemp("postgresql"), shelf) as loading:
        yield loading


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def mysql(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shelf: Path
) -> Iterator[Loading]:
    with _loading(request.param, tmp_path_factory.mktemp(request.param), shelf) as loading:
        yield loading


@contextmanager
def _loading(engine: str, folder: Path, shelf: Path) -> Iterator[Loading]:
    with bench_for(engine, folder, shelf) as bench:
        bench.initialise()
        server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))

        def load(place: Path, database: str = "") -> list[str]:
            taking, dump = bench.engine.taking, dump_at(place)
            assert taking is not None
            return taking.load(bench.installation, server, bench.data, dump, database, lambda _: None)

        client: list[str] = []
        if engine != "postgresql":
            commands = ["--commands", "--system-command"] if engine == "mysql" else []
            name, recipe = ("mysql", MYSQL) if engine == "mysql" else ("mariadb", MARIADB)
            client = [
                *program(bench.installation, recipe.client, name),
                *mysql_options(server.url),
                "--batch",
                *commands,
            ]
        yield Loading(load, bench.ask(server), client)


COMMANDS_OF_PSQL = [
    "\\! touch {mark}",
    "SELECT 1 \\! touch {mark}",
    "SELECT 1 \\g | touch {mark}",
    "SELECT 1 \\g {mark}",
    "SELECT 'touch {mark}' \\gexec",
    "\\o {mark}",
    "SELECT 1 \\w {mark}",
    "\\copy articles TO {mark}",
    "\\copy articles TO PROGRAM 'touch {mark}'",
    "\\i {script}",
    "\\set x `touch {mark}`",
    "\\unrestrict `touch {mark}`",
    "SELECT 1 \\unrestrict a `touch {mark}`",
    "{blanks}\\unrestrict a `touch {mark}`",
    "\\connect `touch {mark}`",
    "\\connect \"dbname='a' host={folder}\"",
    "\\connect shop \\! touch {mark}",
    # Dyno must not take it for data when psql does not.
    "/*\nCOPY articles FROM stdin;\n*/\n\\! touch {mark}\n\\.",
]


@pytest.mark.parametrize("command", COMMANDS_OF_PSQL)
def test_a_dump_of_postgresql_runs_no_program_and_writes_no_file(
    command: str, postgresql: Loading, tmp_path: Path
) -> None:
    mark, script = tmp_path / "mark", tmp_path / "script"
    script.write_text(f"\\! touch {mark}\n")
    text = command.format(mark=mark, script=script, folder=tmp_path, blanks=" " * (9 << 20))
    place = tmp_path / "dump"
    place.write_text(f"-- PostgreSQL database dump\n\\restrict abc\nSELECT 1;\n\\unrestrict abc\n{text}\n")
    line = 5 + text.count("\n", 0, text.rindex("\\!" if "/*" in text else "\\"))
    with pytest.raises(UserError, match=rf"{place}:{line}: a command of psql's own is refused") as refused:
        postgresql.load(place)
    assert "take the command out" in refused.value.hint
    assert not mark.exists()


def test_a_text_that_reads_like_such_a_command_is_loaded(postgresql: Loading, tmp_path: Path) -> None:
    text = r"say \\unrestrict `id`, \\! or \\connect"
    place = tmp_path / "dump"
    place.write_text(
        "-- PostgreSQL database dump\nCREATE TABLE texts (line text);\n"
        f"COPY texts FROM stdin;\n{text}\n\\\\! id\n\\.\nINSERT INTO texts VALUES ('\\! id');\n"
        "\\connect template1\n"
        "\\connect -reuse-previous=on \"dbname='postgres'\"\nCREATE TABLE there (id int);\n"
    )
    postgresql.load(place)
    assert postgresql.ask("SELECT line FROM texts") == [
        [text.replace("\\\\", "\\")],
        ["\\! id"],
        ["\\! id"],
    ]


def test_a_mistake_is_told_with_its_line_behind_changes_of_the_database(
    postgresql: Loading, tmp_path: Path
) -> None:
    place, connect = tmp_path / "dump", "SELECT 1;\n\\connect postgres\n"
    for number, line in enumerate(("SELECT wrong;", "\\connect there_is_none", "\\! id"), 1):
        place.write_text(f"-- PostgreSQL database dump\n{connect * number}{line}\n")
        with pytest.raises(UserError, match=rf"{place}:{2 + 2 * number}: ") as refused:
            postgresql.load(place)
        assert refused.value.message.endswith(f", at `{line}`")


def test_a_psql_that_cannot_be_restricted_loads_no_dump(
    homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    server, psql = tmp_path / "postgres", tmp_path / "psql"
    for place in (server, psql):
        place.write_text("#!/bin/sh\necho '  \\! [COMMAND]  execute command in shell'\n")
        place.chmod(0o755)
    installed, dump = Installation("postgresql", "16.3", "", tmp_path, (str(server),), ""), tmp_path / "dump"
    dump.write_text("-- PostgreSQL database dump\n")
    assert program(installed, POSTGRESQL.client, "psql") == [str(psql)]
    with pytest.raises(EngineMissing, match="no psql of this machine can be restricted"):
        require_dump(installed, dump_at(dump))


COMMANDS_OF_MYSQL = [
    "\\! touch {mark}",
    "system touch {mark}",
    "SELECT 1; \\! touch {mark}",
    "\\. {script}",
    "source {script}",
    "tee {mark}\nSELECT 1;",
    "\\T {mark}\nSELECT 1;",
    "pager touch {mark}\nSELECT 1;",
]


@pytest.mark.parametrize("command", COMMANDS_OF_MYSQL)
def test_a_dump_of_mysql_runs_no_program_and_writes_no_file(
    command: str, mysql: Loading, tmp_path: Path
) -> None:
    mark, script, place = tmp_path / "mark", tmp_path / "script", tmp_path / "dump"
    script.write_text(f"\\! touch {mark}\n")
    place.write_text(f"-- MariaDB dump 10.19\nSELECT 1;\n{command.format(mark=mark, script=script)}\n")
    with pytest.raises(UserError, match=rf"{place}:\d+: .*(SQL syntax|Unknown command)"):
        mysql.load(place)
    assert not mark.exists()


def test_the_client_of_mysql_would_obey_such_a_command(mysql: Loading, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    subprocess.run(mysql.client, input=f"\\! touch {mark}\n".encode(), check=True)
    assert mark.exists()


LINES = (
    "SET transaction_timeout = 0;",
    "SET default_toast_compression = 'lz4';",
    "\\connect postgres",
    "\\restrict abc",
    "\\unrestrict abc",
    "CREATE ROLE ann;",
    "ALTER TABLE rows OWNER TO ann;",
    "CREATE DATABASE shop WITH TEMPLATE = template0 LOCALE = 'nowhere';",
    "\\.",
    "-- it's",
    "/*",
    "*/",
    "/*!40101 SET NAMES utf8 */;",
    "/*M!999999\\- enable the sandbox mode */",
    "DELIMITER ;;",
    "USE mysql;",
    "$a$",
    "'",
    '"',
    ";",
    "",
)
"""Lines of a text that read like what a dump holds beside its rows."""
ROWS = st.lists(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=4).map("\n".join), min_size=1, max_size=12
)


@settings(max_examples=12, deadline=None)
@given(ROWS, st.sampled_from(["copy", "insert", "dollar"]), st.booleans())
def test_rows_come_out_of_postgresql_as_they_stand_in_the_dump(
    postgresql: Loading, tmp_path_factory: pytest.TempPathFactory, rows: list[str], form: str, is_crlf: bool
) -> None:
    """Copied rows have no ends of lines, so the dump may have those of another system."""
    if form == "copy":
        escaped = [row.replace("\\", "\\\\").replace("\n", "\\n") for row in rows]
        lines = ["COPY rows FROM stdin;", *(f"{number}\t{row}" for number, row in enumerate(escaped)), "\\."]
    else:
        quoted = [
            f"$d$\n{row}$d$" if form == "dollar" else "'\n" + row.replace("'", "''") + "'" for row in rows
        ]
        lines = [f"INSERT INTO rows VALUES ({number}, {row});" for number, row in enumerate(quoted)]
    head = ["-- PostgreSQL database dump", "SET transaction_timeout = 0;", "DROP TABLE IF EXISTS rows;"]
    text = "\n".join([*head, "CREATE TABLE rows (number int, line text);", *lines, "\\unrestrict abc", ""])
    place = tmp_path_factory.mktemp("rows") / "dump"
    place.write_bytes(text.replace("\n", "\r\n" if is_crlf and form == "copy" else "\n").encode())
    postgresql.load(place)
    expected = rows if form == "copy" else [f"\n{row}" for row in rows]
    assert postgresql.ask("SELECT line FROM rows ORDER BY number") == [[row] for row in expected]


def test_a_copied_row_that_is_a_setting_or_a_command_stays_a_row(postgresql: Loading, tmp_path: Path) -> None:
    place = tmp_path / "dump"
    place.write_text(
        "-- PostgreSQL database dump\nCREATE TABLE settings (line text);\nCOPY settings FROM stdin;\n"
        "SET transaction_timeout = 0;\n\\connect foo\nCREATE ROLE eve;\n\\.\n"
    )
    postgresql.load(place)
    told = postgresql.ask("SELECT line FROM settings")
    assert told == [["SET transaction_timeout = 0;"], ["connect foo"], ["CREATE ROLE eve;"]]


def test_a_locale_of_another_machine_is_left_out_of_the_statement_alone(
    postgresql: Loading, tmp_path: Path
) -> None:
    place = tmp_path / "dump"
    statement = "CREATE DATABASE elsewhere WITH TEMPLATE = template0 LOCALE = 'nowhere.UTF-8';"
    place.write_text(
        "-- PostgreSQL database dump\nCREATE DATABASE elsewhere;\n"
        f"DROP DATABASE IF EXISTS elsewhere;\n{statement}\n\\connect elsewhere\n"
        f"CREATE TABLE texts (line text);\nCOPY texts FROM stdin;\n{statement}\n\\.\n"
    )
    (told,) = postgresql.load(place)
    assert (
        told == "CREATE DATABASE elsewhere WITH TEMPLATE = template0: its own locale is not on this machine"
    )
    names = postgresql.ask("SELECT datname FROM pg_database WHERE datname ~ '^(elsewhere|dyno_locale)'")
    assert names == [["elsewhere"]]


@settings(max_examples=12, deadline=None)
@given(ROWS)
def test_rows_come_out_of_mysql_as_they_stand_in_the_dump(
    mysql: Loading, tmp_path_factory: pytest.TempPathFactory, rows: list[str]
) -> None:
    escaped = [row.replace("\\", "\\\\").replace("'", "''") for row in rows]
    lines = [f"INSERT INTO texts VALUES ({number}, '\n{row}');" for number, row in enumerate(escaped)]
    head = [
        "-- MariaDB dump 10.19",
        "DROP TABLE IF EXISTS texts;",
        "DELIMITER ;;",
        "SELECT 1 ;;",
        "DELIMITER ;",
    ]
    text = "\n".join([*head, "/*!40101 CREATE TABLE texts (number int, line text) */;", *lines])
    place = tmp_path_factory.mktemp("rows") / "dump"
    place.write_text(text)
    mysql.load(place)
    assert mysql.ask("SELECT line FROM texts ORDER BY number") == [[f"\n{row}"] for row in rows]


def test_a_text_that_names_a_database_does_not_name_that_of_the_dump(mysql: Loading, tmp_path: Path) -> None:
    place = tmp_path / "dump"
    texts = "CREATE TABLE named (line text);\nINSERT INTO named VALUES ('\nUSE there;\n');\n-- '\n"
    place.write_text(f"-- MariaDB dump 10.19\n{texts}/*\nUSE nowhere;\n*/\n")
    mysql.load(place, "shop")
    assert mysql.ask("SELECT line FROM shop.named") == [["\nUSE there;\n"]]
