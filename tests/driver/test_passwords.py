"""A password that a URL lacks is found where `mysql` and `psql` look for it, in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.driver.passwords import query, source_of, with_password, without_any
from dbdyno.errors import DriverFailed

VARIABLES = ("MYSQL_PWD", "PGPASSWORD", "PGPASSFILE")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def completed(url: str) -> str:
    return with_password(url, pytest.fail)


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("line", "password"),
    [
        ("password = s3/cret", "s3%2Fcret"),
        ("password=a#b", "a"),
        ('password = "a#b"', "a%23b"),
        (r"password = 'it\'s'", "it%27s"),
        (r"password = a\\b\sc", "a%5Cb%20c"),
        ("password", ""),
        ("# password=x", ""),
        ("[mysqld]\npassword=x", ""),
        ("password=x\npassword=y", "y"),
    ],
)
def test_mysql_takes_it_from_the_group_of_clients(home: Path, line: str, password: str) -> None:
    write(home / ".my.cnf", f"[mysqld]\npassword=no\n[client]\n{line}\n", 0o644)
    added = f":{password}" if password else ""
    for scheme in ("mysql", "mariadb"):
        assert completed(f"{scheme}://me@h/d?socket=/s") == f"{scheme}://me{added}@h/d?socket=/s"


def test_for_mysql_a_file_wins_over_the_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", "variable")
    assert completed("mysql://me@h/d") == "mysql://me:variable@h/d"
    path = write(home / ".my.cnf", "[client]\npassword=file\n")
    assert completed("mysql://me@h/d") == "mysql://me:file@h/d"
    path.chmod(0o666)
    told: list[str] = []
    assert with_password("mysql://me@h/d", told.append) == "mysql://me:variable@h/d"
    assert told == [f"{path} is not read, because others may write it: chmod o-w {path}"]


@pytest.mark.parametrize(
    ("line", "url", "password"),
    [
        ("h:5432:d:me:pw", "postgresql://me@h/d", "pw"),
        ("h:5432:d:me:pw", "postgres://me@h:5432/d", "pw"),
        ("h:5432:d:me:pw", "postgresql://me@h:5433/d", ""),
        ("h:5432:d:me:pw", "postgresql://you@h/d", ""),
        ("h:5432:d:me:pw", "postgresql://me@h/other", ""),
        ("*:*:*:*:p\\:w\\\\", "postgresql://me@h/d", "p%3Aw%5C"),
        ("\\*:*:*:*:pw", "postgresql://me@h/d", ""),
        ("#h:5432:d:me:pw", "postgresql://me@h/d", ""),
        ("h:5432:d:me", "postgresql://me@h/d", ""),
        ("\\:\\:1:7:d:me:pw", "postgresql://me@[::1]:7/d", "pw"),
        ("localhost:5432:d:me:pw", "postgresql://me@/d?socket=/run/pg", "pw"),
        ("/run/pg:7:d:me:pw", "postgresql://me@/d?socket=/run/pg/.s.PGSQL.7", "pw"),
        ("/run/pg:9:d:me:pw", "postgresql://me@h:9/d?host=/run/pg", "pw"),
        ("two:5433:d:me:pw", "postgresql://me@one,two:5433/d", "pw"),
        ("two:5433:d:me:pw", "postgresql://me@one:5433,two/d", ""),
        ("/b:5432:d:me:pw", "postgresql://me@/d?host=/a,/b", "pw"),
        ("db:5432:d:me:pw", "postgresql://me@/d?host=db", "pw"),
        ("h:5432:me:me:pw", "postgresql://me@h", "pw"),
        ("h:5432:a b:me:pw", "postgresql://me@h/a%20b", "pw"),
    ],
)
def test_postgresql_takes_it_from_the_first_line_that_fits(
    home: Path, line: str, url: str, password: str
) -> None:
    write(home / ".pgpass", f"nobody:*:*:*:no\n{line}\n*:*:*:else:no\n")
    assert completed(url) == (url.replace("@", f":{password}@", 1) if password else url)


def test_the_source_of_a_password_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / ".pgpass", "*:*:*:*:home\n")
    write(home / ".my.cnf", "[client]\npassword=file\n")
    assert source_of(completed("postgresql://me@h/d?tls=off")) == "~/.pgpass"
    assert source_of(completed("mysql://me@h/d")) == "~/.my.cnf"
    monkeypatch.setenv("PGPASSWORD", "variable")
    assert source_of(completed("postgresql://me@h/d")) == "PGPASSWORD"
    for url in ("postgresql://me:own@h/d", "postgresql://me@h/d", "sqlite:///x"):
        assert source_of(url) == ""


def test_where_no_password_was_found_is_told() -> None:
    assert without_any("postgresql://me@h/d") == "the URL nor PGPASSWORD nor ~/.pgpass"
    assert without_any("mariadb://me@h/d") == "the URL nor ~/.my.cnf nor MYSQL_PWD"
    for url in ("postgresql://me:own@h/d", "mysql://me:@h/d", "sqlite:///x"):
        assert without_any(url) == ""


def test_for_postgresql_the_variable_wins_over_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(home / ".pgpass", "*:*:*:*:home\n")
    monkeypatch.setenv("PGPASSFILE", str(write(home / "other", "*:*:*:*:other\n")))
    assert completed("postgresql://me@h/d") == "postgresql://me:other@h/d"
    monkeypatch.setenv("PGPASSWORD", "variable")
    assert completed("postgresql://me@h/d") == "postgresql://me:variable@h/d"
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.delenv("PGPASSFILE")
    path.chmod(0o640)
    told: list[str] = []
    assert with_password("postgresql://me@h/d", told.append) == "postgresql://me@h/d"
    assert told == [f"{path} is not read, because others may read it: chmod 600 {path}"]


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:own@h/d",
        "mysql://me:@h/d",
        "mysql://me:a/b@h/d",
        "mysql:me@h/d",
        "sqlite:///x",
        "firebird://h/x",
        "http://h",
        "nonsense",
    ],
)
def test_a_url_with_a_password_and_one_that_takes_none_stay(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", "variable")
    assert completed(url) == url


def test_the_rows_of_one_statement_come_back(tmp_path: Path) -> None:
    assert query(f"sqlite://{tmp_path}/empty.sqlite", "SELECT 1, 'two', NULL, 4.5") == [[1, "two", None, 4.5]]


def test_what_the_server_refuses_is_told_in_the_drivers_words(tmp_path: Path) -> None:
    with pytest.raises(DriverFailed, match="nothing_here") as failed:
        query(f"sqlite://{tmp_path}/empty.sqlite", "SELECT * FROM nothing_here")
    assert failed.value.kind == "server"


def test_a_server_that_is_not_there_is_a_failure_to_connect(tmp_path: Path) -> None:
    with pytest.raises(DriverFailed) as failed:
        query(f"mysql://dyno@localhost/dyno?socket={tmp_path}/none.sock", "SELECT 1")
    assert failed.value.kind == "connect"
