"""The driver's sessions against real servers: its own conformance suite, and every way to log in."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.engines.engine import Server
from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.obtain import debian
from tests.conformance.conftest import started
from tests.conformance.sessions_cases import rows
from tests.loopback import drawn_address
from tests.needs import on_machine
from tests.warm import Process

ROOT = Path(__file__).parents[2]
HOST, MYSQL_HOST = drawn_address(), drawn_address()
NAME = "dyno.test"
PASSWORD = "s3cr%C3%A9t%20word"
CLEAR = "s3cr\N{LATIN SMALL LETTER E WITH ACUTE}t word"


@dataclass(frozen=True)
class Certificates:
    """A server's certificate, and that of the authority which signed it."""

    authority: Path
    certificate: Path
    key: Path
    of_client: Path
    """A client's certificate and its key, for the account `certified`."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if on_machine("openssl") is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        command = ["openssl", *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    new_key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Dyno's tests")
    openssl("req", *new_key[:3], "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={NAME}")
    names = folder / "names"
    names.write_text(f"subjectAltName=DNS:{NAME},IP:{HOST}\nbasicConstraints=CA:FALSE\n")
    signed_by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
    openssl("x509", "-req", "-in", "server.csr", *signed_by, "-out", "server.pem", "-extfile", str(names))
    (folder / "server.key").chmod(0o600)
    openssl("req", *new_key[:3], "-keyout", "client.key", "-out", "client.csr", "-subj", "/CN=certified")
    openssl("x509", "-req", "-in", "client.csr", *signed_by, "-out", "client.crt")
    both = folder / "client.pem"
    both.write_text((folder / "client.crt").read_text() + (folder / "client.key").read_text())
    return Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key", both)


PLUGINS = debian.DebianRecipe(
    engine="plugins-of-mariadb",
    packages=("mariadb-server",),
    server="mariadb-server",
    binary="usr/lib/mysql/plugin/auth_ed25519.so",
    suites={"11.8": "trixie"},
)
"""What the server needs for accounts with ed25519 and parsec; Dyno itself has no use for it."""


def unpacked(recipe: debian.DebianRecipe) -> Path:
    """Where these packages are, fetched when they are not here."""
    copies = debian.fetched(recipe.engine)
    try:
        return (copies[0] if copies else debian.fetch(recipe)).prefix
    except DynoError as failed:
        pytest.skip(f"{recipe.engine} cannot be had here: {failed.message}")


@pytest.fixture(scope="module")
def plugins() -> Path:
    """The folder of the server's plugins."""
    return (unpacked(PLUGINS) / PLUGINS.binary).parent


@pytest.fixture(scope="module")
def mariadb(
    certificates: Certificates, plugins: Path, tmp_path_factory: pytest.TempPathFactory, shelf: Path
) -> Iterator[Server]:
    settings: dict[str, Level] = {
        "skip_networking": "OFF",
        "bind_address": HOST,
        "port": 3306,
        "plugin_dir": str(plugins),
        "plugin_load_add": "auth_ed25519;auth_parsec",
        "ssl_ca": str(certificates.authority),
        "ssl_cert": str(certificates.certificate),
        "ssl_key": str(certificates.key),
    }
    with started("mariadb", settings, tmp_path_factory.mktemp("mariadb"), shelf) as server:
        yield server


@pytest.fixture(scope="module")
def postgresql(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory, shelf: Path
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("postgresql")
    rules = folder / "pg_hba.conf"
    rules.write_text(
        "local all all trust\n"
        "hostssl all tls_only,tls_suite all scram-sha-256\n"
        "hostssl all certified all scram-sha-256 clientcert=verify-full\n"
        "host all with_md5 all md5\n"
        "host all with_scram all scram-sha-256\n"
        "host all bound all scram-sha-256\n"
        "host all in_clear all password\n"
    )
    settings: dict[str, Level] = {
        "listen_addresses": HOST,
        "hba_file": str(rules),
        "ssl": "on",
        "ssl_cert_file": str(certificates.certificate),
        "ssl_key_file": str(certificates.key),
        "ssl_ca_file": str(certificates.authority),
    }
    with started("postgresql", settings, folder, shelf) as server:
        yield server


SHA2_PLUGINS = ("caching_sha2_password", "sha256_password")


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory, shelf: Path) -> Iterator[Server]:
    settings: dict[str, Level] = {"skip_networking": "OFF", "bind_address": MYSQL_HOST, "port": 3306}
    # Passwords that come by an open line are encrypted with a key that Dyno's own servers are not given.
    settings |= {f"{plugin}_auto_generate_rsa_keys": "ON" for plugin in SHA2_PLUGINS}
    with started("mysql", settings, tmp_path_factory.mktemp("mysql"), shelf) as server:
        yield server


ENCRYPTED_ACCOUNTS = {
    "mariadb": (
        f"CREATE USER tls_suite@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{CLEAR}') REQUIRE SSL",
        "GRANT ALL ON *.* TO tls_suite@'%'",
    ),
    "mysql": (
        f"CREATE USER tls_suite@'%' IDENTIFIED WITH caching_sha2_password BY '{CLEAR}' REQUIRE SSL",
        "GRANT ALL ON *.* TO tls_suite@'%'",
    ),
    "postgresql": (f"CREATE ROLE tls_suite SUPERUSER LOGIN PASSWORD '{CLEAR}'",),
}
"""Accounts with the strongest log-in that each engine has, to be had by TLS only."""


def encrypted_url(engine: str, server: Server) -> str:
    for sql in ENCRYPTED_ACCOUNTS[engine]:
        rows(server.url, sql)
    host = MYSQL_HOST if engine == "mysql" else HOST
    return f"{server.url.split(':', 1)[0]}://tls_suite:{PASSWORD}@{host}/dyno?tls=required"


@pytest.fixture(scope="module")
def suite() -> str:
    """The program of the sessions' own tests, for which cargo is asked once. It is built as all tests of the
    crates are, so that nothing is compiled twice."""
    if on_machine("cargo") is None:
        pytest.skip("cargo is not installed")
    command = ["cargo", "tests", "--test", "conformance", "--no-run"]
    made = subprocess.run(
        [*command, "--message-format", "json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    told = [json.loads(line) for line in made.stdout.splitlines()]
    [program] = [one["executable"] for one in told if one.get("executable")]
    return str(program)


@pytest.mark.parametrize(
    ("engine", "module", "way"),
    [
        ("mariadb", "mysql", "socket"),
        ("mariadb", "mysql", "tls"),
        ("mysql", "mysql", "socket"),
        ("mysql", "mysql", "tls"),
        ("postgresql", "postgresql", "socket"),
        ("postgresql", "postgresql", "tls"),
        ("postgresql", "postgresql", "unnamed"),
        ("postgresql", "postgresql", "text"),
    ],
)
def test_the_sessions_suite_passes(
    engine: str, module: str, way: str, suite: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(engine)
    url = encrypted_url(engine, server) if way == "tls" else server.url
    if way in ("unnamed", "text"):
        url += f"&statements={way}"
    done = subprocess.run(
        [suite, "--quiet", f"{module}::", "--nocapture"],
        cwd=ROOT / "crates" / "driver",
        env={**os.environ, f"DYNO_TEST_{module.upper()}_URL": url},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "skipped" not in done.stdout
    assert " 0 passed" not in done.stdout


def refusal(url: str) -> str:
    with pytest.raises(_driver.DriverError) as caught:
        rows(url, "SELECT 1")
    assert caught.value.kind == "connect"
    return f"{caught.value.message} {caught.value.hint}"


MARIADB_CIPHER = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"


@pytest.mark.parametrize(
    ("plugin", "user"),
    [
        ("mysql_native_password", "native"),
        ("ed25519", "edwards"),
        ("ed25519", "no_password"),
        ("parsec", "parsec"),
    ],
)
def test_mariadb_accounts(mariadb: Server, plugin: str, user: str) -> None:
    clear, word = ("", "") if user == "no_password" else (CLEAR, f":{PASSWORD}")
    rows(mariadb.url, f"CREATE USER {user}@'%' IDENTIFIED VIA {plugin} USING PASSWORD('{clear}')")
    for way in ("tls=off", "tls=required", f"socket={mariadb.url.split('socket=')[1]}"):
        assert rows(f"mysql://{user}{word}@{HOST}/?{way}", "SELECT CURRENT_USER()") == [[f"{user}@%"]]
    assert f'check user "{user}"' in refusal(f"mysql://{user}:wrong@{HOST}/?tls=off")


def test_mariadb_accounts_that_demand_tls(mariadb: Server, certificates: Certificates) -> None:
    rows(
        mariadb.url, f"CREATE USER tls_only@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{CLEAR}') REQUIRE SSL"
    )
    url = f"mysql://tls_only:{PASSWORD}@{HOST}/"
    verified = f"tls=verify&tls_ca={certificates.authority}"
    for way in ("tls=auto", "tls=required", verified):
        [[_, cipher]] = rows(f"{url}?{way}", MARIADB_CIPHER)
        assert str(cipher).startswith("TLS_")
    assert "tls=required" in refusal(f"{url}?tls=off")
    assert "UnknownIssuer" in refusal(f"{url}?tls=verify")


def test_mariadb_accounts_that_demand_a_certificate(mariadb: Server, certificates: Certificates) -> None:
    rows(
        mariadb.url,
        f"CREATE USER certified@'%' IDENTIFIED VIA parsec USING PASSWORD('{CLEAR}') "
        "REQUIRE SUBJECT '/CN=certified'",
    )
    url = f"mysql://certified:{PASSWORD}@{HOST}/"
    assert rows(f"{url}?tls_cert={certificates.of_client}", "SELECT CURRENT_USER()") == [["certified@%"]]
    assert 'check user "certified"' in refusal(f"{url}?tls=required")


def test_a_plain_mariadb_connection_is_not_encrypted(mariadb: Server) -> None:
    rows(mariadb.url, "CREATE USER plain@'%' IDENTIFIED VIA mysql_native_password USING ''")
    assert rows(f"mysql://plain@{HOST}/", MARIADB_CIPHER) == [["Ssl_cipher", ""]]


@pytest.mark.parametrize("plugin", SHA2_PLUGINS)
@pytest.mark.parametrize("password", [PASSWORD, ""])
def test_mysql_accounts(mysql: Server, plugin: str, password: str) -> None:
    """Over the open line first, where the password goes encrypted with the server's key: what was proved once
    caching_sha2_password need not see again. Then by what it keeps of it, over TLS and over the socket."""
    user, clear = f"{plugin[:6]}_{len(password)}", CLEAR if password else ""
    rows(mysql.url, f"CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{clear}'")
    word = f":{password}" if password else ""
    for way in ("tls=off", "tls=off", "tls=required", f"socket={mysql.url.split('socket=')[1]}"):
        answer = rows(f"mysql://{user}{word}@{MYSQL_HOST}/?{way}", "SELECT CURRENT_USER()")
        assert answer == [[f"{user}@%"]]
    for way in ("tls=off", "tls=required"):
        assert f'check user "{user}"' in refusal(f"mysql://{user}:wrong@{MYSQL_HOST}/?{way}")


@pytest.mark.parametrize("plugin", SHA2_PLUGINS)
def test_mysql_accounts_whose_password_first_needs_tls_or_the_socket(mysql: Server, plugin: str) -> None:
    for number, way in enumerate(("tls=required", f"socket={mysql.url.split('socket=')[1]}")):
        user = f"first_{plugin[:6]}_{number}"
        rows(mysql.url, f"CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{CLEAR}'")
        answer = rows(f"mysql://{user}:{PASSWORD}@{MYSQL_HOST}/?{way}", "SELECT CURRENT_USER()")
        assert answer == [[f"{user}@%"]]


POSTGRESQL_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.mark.parametrize(
    ("user", "encryption"),
    [("with_scram", "scram-sha-256"), ("with_md5", "md5"), ("tls_only", "scram-sha-256")],
)
def test_postgresql_accounts(
    postgresql: Server, certificates: Certificates, user: str, encryption: str
) -> None:
    rows(
        postgresql.url,
        f"SET password_encryption = '{encryption}'; CREATE ROLE {user} LOGIN PASSWORD '{CLEAR}'",
    )
    url = f"postgresql://{user}:{PASSWORD}@{HOST}/dyno"
    verified = f"tls=verify&tls_ca={certificates.authority}"
    for way in ("tls=required", verified):
        assert rows(f"{url}?{way}", POSTGRESQL_TLS) == [[1]]
    behind = url.replace(f"@{HOST}/", "@/")
    assert rows(f"{behind}?host={HOST}&{verified}", POSTGRESQL_TLS) == [[1]]
    assert rows(url, POSTGRESQL_TLS) == [[int(user == "tls_only")]]
    assert f'check user "{user}"' in refusal(url.replace(PASSWORD, "wrong") + "?tls=required")
    if user == "tls_only":
        assert "write tls=required" in refusal(f"{url}?tls=off")
    assert "UnknownIssuer" in refusal(f"{url}?tls=verify")


def test_scram_is_bound_to_the_certificate_of_the_server(postgresql: Server) -> None:
    """The server compares the hash, so that a wrong one would be refused."""
    rows(postgresql.url, f"CREATE ROLE bound LOGIN PASSWORD '{CLEAR}'")
    url = f"postgresql://bound:{PASSWORD}@{HOST}/dyno"
    for binding in ("require", "prefer", "disable"):
        assert rows(f"{url}?tls=required&channel_binding={binding}", POSTGRESQL_TLS) == [[1]]
    assert "channel_binding requires" in refusal(f"{url}?tls=off&channel_binding=require")
    assert "channel_binding requires" in refusal(f"{postgresql.url}&channel_binding=require")


def test_postgresql_accounts_that_demand_a_certificate(
    postgresql: Server, certificates: Certificates, tmp_path: Path
) -> None:
    rows(postgresql.url, f"CREATE ROLE certified LOGIN PASSWORD '{CLEAR}'")
    url = f"postgresql://certified:{PASSWORD}@{HOST}/dyno"
    certificate = certificates.of_client
    key = certificate.with_suffix(".key")
    for way in (f"tls_cert={certificate}", f"tls_cert={certificate.with_suffix('.crt')}&tls_key={key}"):
        assert rows(f"{url}?{way}", POSTGRESQL_TLS) == [[1]]
    assert "tls_cert=PATH" in refusal(f"{url}?tls=required")
    (empty := tmp_path / "empty.pem").touch()
    for way, told in (
        (f"tls_cert={empty}", "it holds no certificate"),
        (
            f"tls_cert={tmp_path / 'nowhere'}",
            "give a PEM file with the client's certificate as tls_cert=PATH",
        ),
        (f"tls_cert={certificates.certificate}&tls_key={key}", "it is not the key of"),
    ):
        with pytest.raises(_driver.DriverError) as caught:
            rows(f"{url}?{way}", "SELECT 1")
        assert told in f"{caught.value.message} {caught.value.hint}"


def test_a_password_in_clear_goes_over_tls_only(postgresql: Server) -> None:
    rows(postgresql.url, f"CREATE ROLE in_clear LOGIN PASSWORD '{CLEAR}'")
    url = f"postgresql://in_clear:{PASSWORD}@{HOST}/dyno"
    assert rows(f"{url}?tls=required", "SELECT 1") == [[1]]
    assert "clear text" in refusal(f"{url}?tls=off")


def test_a_load_whose_server_dies_ends_at_once_and_as_a_failure(tmp_path: Path, shelf: Path) -> None:
    with started("mariadb", {}, tmp_path, shelf) as server:
        options = {"table_size": 1000}
        _driver.prepare(json.dumps({"url": server.url, "workload": "point_select", "options": options}))
        load = ["load", "run", "point_select", "--url", server.url, "--table-size", "1000"]
        how = ("--clients", "3", "--warmup", "0", "--time", "60", "--json")
        child = Process(*load, *how, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while rows(server.url, "SELECT COUNT(*) > 3 FROM information_schema.processlist") == [[0]]:
            assert child.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        server.kill()
        said, errors = child.communicate(timeout=30)
    tally = json.loads(said)
    assert child.returncode == 1
    assert "every client has lost its connection, so the run ended early" in errors
    assert (tally["clients_lost"], sum(tally["errors"].values())) == (3, 3)
    assert 0 < tally["duration_s"] < 30


def test_what_was_loaded_into_postgresql_is_vacuumed_and_analysed(tmp_path: Path, shelf: Path) -> None:
    """Its autovacuum would else do so in the midst of a trial."""
    with started("postgresql", {"autovacuum": "off"}, tmp_path, shelf) as server:
        _driver.prepare(json.dumps({"url": server.url, "workload": "tpcb", "options": {"scale": 1}}))
        seen = "SELECT relname FROM pg_stat_user_tables WHERE last_vacuum IS NULL OR last_analyze IS NULL"
        assert rows(server.url, seen) == []
        assert rows(server.url, "SELECT COUNT(*) FROM pg_stats WHERE tablename = 'pgbench_accounts'") != [[0]]


LONG_NAME = "a" * 64
"""One letter more than a name has in PostgreSQL."""
TOLD = (
    "CREATE OR REPLACE FUNCTION told() RETURNS INTEGER LANGUAGE plpgsql AS"
    " 'BEGIN RAISE INFO ''asked for''; RAISE WARNING ''told''; RETURN 1; END'"
)


@pytest.mark.parametrize(
    ("engine", "sql", "level", "code"),
    [
        ("mariadb", "SELECT CAST('1x' AS INTEGER) AS a", "Warning", 1292),
        ("postgresql", f"SELECT 1 AS {LONG_NAME}", "NOTICE", "42622"),
        ("postgresql", "SELECT told()", "WARNING", "01000"),
    ],
)
def test_a_statement_is_answered_with_its_own_warnings(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str, sql: str, level: str, code: int | str
) -> None:
    """Not with what it was asked to tell, nor with those of the statement before it, which MariaDB still
    tells after one that reads no table."""
    server: Server = request.getfixturevalue(engine)
    if "told()" in sql:
        rows(server.url, TOLD)
    (tmp_path / "queries").mkdir()
    for name, text in (("1-warned", sql), ("2-plain", "SELECT 0 AS a")):
        (tmp_path / "queries" / f"{name}.sql").write_text(text)
    options = {"folder": "queries", "rounds": 1}
    job = {"url": server.url, "workload": "statements", "folder": str(tmp_path), "options": options}
    warned, quiet = (one["runs"] for one in json.loads(_driver.answers(json.dumps(job)))["statements"])
    for run in warned:
        [warning] = run["warnings"]
        assert warning[:2] == [level, code] and warning[2], warning
    assert [(run["rows"], run["warnings"]) for run in quiet] == [([[0]], [])] * 2


@pytest.mark.parametrize(("engine", "code"), [("mariadb", "1054"), ("postgresql", "42703")])
def test_statements_are_sent_in_rounds_and_answered_with_types_and_codes(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str, code: str
) -> None:
    server: Server = request.getfixturevalue(engine)
    (tmp_path / "queries").mkdir()
    (tmp_path / "setup.sql").write_text(
        "CREATE TABLE things (a INTEGER PRIMARY KEY, b DOUBLE PRECISION, c VARCHAR(9));"
        "INSERT INTO things VALUES (1, 0.5, 'x'), (2, NULL, 'y')"
    )
    for name, text in (
        ("whole", "SELECT a, b, c FROM things ORDER BY a"),
        ("less", "DELETE FROM things WHERE a = 2"),
        ("wrong", "SELECT nothing FROM things"),
    ):
        (tmp_path / "queries" / f"{name}.sql").write_text(text)
    options = {"folder": "queries", "setup": "setup.sql", "rounds": 3}
    job = {"url": server.url, "workload": "statements", "folder": str(tmp_path), "options": options}
    _driver.prepare(json.dumps(job))
    tally = json.loads(_driver.run(json.dumps({**job, "duration_s": 60.0})))
    done = {name: kind["operations"] for name, kind in tally["by_transaction"].items()}
    assert done == {"whole": 3, "less": 3, "wrong": 0} and tally["duration_s"] < 60.0
    asked = json.loads(_driver.answers(json.dumps(job)))["statements"]
    told = {one["name"]: one["runs"] for one in asked}
    assert [one["name"] for one in asked if one["is_ordered"]] == ["whole"]
    first, second = told["whole"]
    assert first == second
    assert (first["rows"], first["types"]) == ([[1, 0.5, "x"], [2, None, "y"]], ["int", "float", "text"])
    for run in told["less"]:
        assert (run["affected"], run["before"]["count"], run["after"]["count"]) == (1, 2, 1)
    assert {run["error"]["code"] for run in told["wrong"]} == {code}
    _driver.cleanup(json.dumps(job))
