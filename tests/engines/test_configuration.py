"""What is taken of an engine's own configuration file, and what is not and why."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.driver.passwords import query
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration, require_settings
from dbdyno.engines.facts import (
    A_PATH,
    A_PROGRAM,
    NOT_SHOWN,
    OF_DYNO,
    OTHER_FILE,
    UNREADABLE,
    NoConfiguration,
)
from dbdyno.engines.postgresql.settings import NOT_ARCHIVED
from dbdyno.errors import DynoError
from dbdyno.frozen import Configuration, Level, LineCount
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Reference

Read = Callable[[str, str], Configuration]

MY_CNF = """
!unknown /etc/mysql/conf.d/
[client]
user = root
[mysqld]
  innodb-buffer-pool-size = 64M   # a comment
sql_mode = "STRICT_TRANS_TABLES,NO_ZERO_DATE"
port = 3307
datadir = /var/lib/mysql
slow_query_log_file=/var/log/slow.log
log-bin = /var/log/mysql/bin
performance-schema-instrument = 'stage/%=ON'
max_connections = 100
[mariadb-11.8]
max_connections = 200
[mysqldump]
quick
"""
POSTGRESQL_CONF = """
# a comment
shared_buffers = 64MB\t# min 128kB
work_mem 8MB
search_path = 'a, ''b'''
listen_addresses = '*'
lc_messages = 'de_DE.UTF-8'
ssl_cert_file = '/etc/ssl/cert.pem'
stats_file = '/var/run/stats'
work_mem = 16MB
= 4
archive_command = 'cp %p wal/%f'
archive_mode = on
"""
FIREBIRD_CONF = """
#TempBlockSize = 1M
DefaultDbCachePages = 4096 # pages
TempCacheLimit = 128M
RemoteServicePort = 3051
TempDirectories = /tmp;/var/tmp
include $(dir_conf)/other.conf
"""


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the text of an engine's configuration file, without an installation of the engine."""

    def read_text(engine: str, text: str) -> Configuration:
        (tmp_path / "some.conf").write_text(text)
        return read_configuration(registry.engine(engine), None, "some.conf", tmp_path)

    return read_text


@pytest.mark.parametrize(
    ("engine", "text", "settings", "reasons"),
    [
        (
            "mariadb",
            MY_CNF,
            {
                "config.innodb_buffer_pool_size": "64M",
                "config.sql_mode": "STRICT_TRANS_TABLES,NO_ZERO_DATE",
                "config.log_bin": True,
                "config.max_connections": "200",
            },
            {
                2: UNREADABLE,
                4: "it stands in [client], which this server does not read",
                8: OF_DYNO,
                9: OF_DYNO,
                10: A_PATH,
                12: NOT_SHOWN,
                17: "it stands in [mysqldump], which this server does not read",
            },
        ),
        (
            "postgresql",
            POSTGRESQL_CONF,
            {
                "config.shared_buffers": "64MB",
                "config.work_mem": "16MB",
                "config.search_path": "a, 'b'",
            },
            {6: OF_DYNO, 7: OF_DYNO, 8: OF_DYNO, 9: A_PATH, 11: UNREADABLE, 12: A_PROGRAM, 13: NOT_ARCHIVED},
        ),
        (
            "firebird",
            FIREBIRD_CONF,
            {"config.DefaultDbCachePages": "4096", "config.TempCacheLimit": "128M"},
            {5: OF_DYNO, 6: A_PATH, 7: OTHER_FILE},
        ),
        ("sqlite", "cache_size = 5", {}, {1: UNREADABLE}),
    ],
)
def test_a_file_gives_its_settings_and_names_what_it_does_not_give(
    read: Read, engine: str, text: str, settings: dict[str, Level], reasons: dict[int, str]
) -> None:
    found = read(engine, text)
    assert found.settings == settings
    assert {one.line: one.reason for one in found.not_taken} == reasons
    assert found.text == text


def test_the_hash_is_of_the_text(read: Read) -> None:
    assert read("mariadb", MY_CNF).digest != read("mariadb", MY_CNF + "#").digest


@pytest.mark.parametrize(
    ("engine", "line", "kept"),
    [
        ("mariadb", "password = hunter2", "password = ***"),
        ("mariadb", "report-password='hunter2 x'", "report-password=***"),
        ("mariadb", "wsrep_sst_auth = root:hunter2", "wsrep_sst_auth = ***"),
        ("mariadb", "password = hunter2'hunter2", "password = ***"),
        ("mariadb", "password = hunter2 hunter2", "password = ***"),
        ("mariadb", "# password = hunter2 hunter2", "# password = ***"),
        ("mariadb", "s3_secret_key = hunter2", "s3_secret_key = ***"),
        ("mariadb", "hashicorp-key-management-token = hunter2", "hashicorp-key-management-token = ***"),
        ("mariadb", "file_key_management_filekey = hunter2", "file_key_management_filekey = ***"),
        (
            "mariadb",
            'wsrep_provider_options = "gcache.size=2G;socket.ssl_password=hunter2"',
            'wsrep_provider_options = "gcache.size=2G;socket.ssl_password=***"',
        ),
        ("mariadb", "init_connect = \"SET PASSWORD = 'hunter2 x'\"", 'init_connect = "SET PASSWORD = ***"'),
        ("mariadb", "password\nold_passwords = 1", "password\nold_passwords = 1"),
        ("mariadb", "strict_password_validation = ON", "strict_password_validation = ON"),
        (
            "postgresql",
            "primary_conninfo = 'host=a password=hunter2'",
            "primary_conninfo = 'host=a password=***'",
        ),
        (
            "postgresql",
            "primary_conninfo = 'password=''hunter2 @x'' host=a'",
            "primary_conninfo = 'password=*** host=a'",
        ),
        (
            "postgresql",
            r"primary_conninfo = 'password = \'x\\\'hunter2 x\' host=a' # b",
            "primary_conninfo = 'password = *** host=a' # b",
        ),
        (
            "postgresql",
            r"primary_conninfo = 'password=x''x\\ hunter2\\\\ host=a'",
            "primary_conninfo = 'password=*** host=a'",
        ),
        ("postgresql", "primary_conninfo = 'password=''x hunter2'", "primary_conninfo = 'password=***'"),
        (
            "postgresql",
            "primary_conninfo = 'postgresql://u:hunter2''@hunter2@h/db?password=hunter2'",
            "primary_conninfo = 'postgresql://u:***@h/db?password=***'",
        ),
        ("postgresql", "app.jwt_secret 'hunter2'", "app.jwt_secret ***"),
        ("postgresql", "ssl_passphrase_command = 'echo hunter2'", "ssl_passphrase_command = ***"),
        ("postgresql", "archive_mode = on # at http://h:80/ a@b", "archive_mode = on # at http://h:80/ a@b"),
        ("postgresql", "password_encryption = md5", "password_encryption = md5"),
    ],
)
def test_secrets_are_not_kept(read: Read, engine: str, line: str, kept: str) -> None:
    head = "[mysqld]\n" if engine == "mariadb" else ""
    found = read(engine, head + line)
    assert found.text == head + kept
    assert "hunter2" not in found.model_dump_json()
    assert found.digest != read(engine, f"{head}{line}3").digest


OPTIONS = {
    "good": "[mysqld]\nmax_connections = 77\n",
    "a mark of the byte order": "\ufeff[mysqld]\nmax_connections = 77\n",
    "no group": "max_connections = 77\ninnodb_io_capacity = 900\n",
    "a broken group": "[mysqld]\nmax_connections = 77\n[client\nuser = x\n",
    "text behind a group": "[mysqld] and more\nmax_connections = 77\n",
    "a group in spaces": "[ mysqld ]\nback_log = 9\n[mysqld]\nmax_connections = 77\n",
    "groups of others": "[client]\nback_log = 9\n[mariadb-10.2]\nport = 8\n[server]\nmax_connections = 77\n",
    "JSON": '{"Databases": []}',
}
OFF = ("(No default value)", "0")
"""How a server shows that there is no binary log."""
SWITCHED = "disable-log-bin skip-log-bin skip-log-bin=1 skip-log-bin=0 log-bin disable-log-bin=0"


@pytest.fixture(params=["mariadb@10.11", "mariadb@11.8", "mysql@9"])
def of_options(request: pytest.FixtureRequest, homes_with_engines: Path) -> Installation:
    try:
        return registry.locate(Reference.of(request.param))
    except DynoError as missing:
        pytest.skip(f"{request.param} cannot be had here: {missing.message}")


@pytest.mark.parametrize("case", OPTIONS)
def test_a_file_is_refused_where_the_server_refuses_it(
    of_options: Installation, tmp_path: Path, case: str
) -> None:
    file = tmp_path / "my.cnf"
    file.write_text(OPTIONS[case])
    told = subprocess.run(
        [*of_options.command, f"--defaults-file={file}", "--print-defaults"], capture_output=True, text=True
    )
    try:
        found = read_configuration(registry.engine(of_options.engine), of_options, "my.cnf", tmp_path)
    except NoConfiguration:
        assert told.returncode != 0, told.stdout
        return
    assert told.returncode == 0, told.stderr
    given = dict(word.removeprefix("--").split("=") for word in told.stdout.split("\n")[1].split())
    assert found.settings == {f"config.{name}": level for name, level in given.items()} != {}


@pytest.mark.parametrize("line", SWITCHED.split())
def test_a_switch_means_what_it_means_to_the_server(
    of_options: Installation, tmp_path: Path, line: str
) -> None:
    (tmp_path / "my.cnf").write_text(f"[mysqld]\n{line}\n")
    found = read_configuration(registry.engine(of_options.engine), of_options, "my.cnf", tmp_path)
    told = subprocess.run(
        [*of_options.command, "--no-defaults", f"--{line}", "--verbose", "--help"],
        capture_output=True,
        text=True,
    ).stdout
    shown = next(row.split(None, 1) for row in told.splitlines() if row.startswith("log-bin "))
    assert found.settings == {"config.log_bin": shown[-1].strip() not in OFF}


def test_a_line_that_is_no_level_is_named_with_its_reason(of_options: Installation, tmp_path: Path) -> None:
    lines = ["maximum-sort-buffer-size = 1M", "loose-no-such = 1", "no_such = 1", "sort_buffer_size = 1M"]
    (tmp_path / "my.cnf").write_text("\n".join(["[mysqld]", *lines, "sort-buffer-size = 2M", ""]))
    found = read_configuration(registry.engine(of_options.engine), of_options, "my.cnf", tmp_path)
    assert found.settings == {"config.sort_buffer_size": "2M"}
    assert [one.line for one in found.not_taken] == [2, 3, 4]
    assert "limits what sessions" in found.not_taken[0].reason and "loose" in found.not_taken[1].reason
    assert found.lines == LineCount(whole=6, silent=1, again=1)


def test_settings_that_depend_on_each_other_are_judged_together(
    of_options: Installation, tmp_path: Path
) -> None:
    """Debian's own file: on 10.11 the collation is not one of the server's own character set."""
    text = "[mysqld]\ncollation-server = utf8mb4_general_ci\ncharacter-set-server = utf8mb4\nback_log = x\n"
    (tmp_path / "my.cnf").write_text(text)
    found = read_configuration(registry.engine(of_options.engine), of_options, "my.cnf", tmp_path)
    assert set(found.settings) == {"config.collation_server", "config.character_set_server"}
    assert [one.line for one in found.not_taken] == [4]
    both = {"collation_server": "utf8mb4_general_ci", "character_set_server": "latin1"}
    refused = registry.engine(of_options.engine).settings.refused(of_options, both)
    assert list(refused) in (["collation_server"], ["character_set_server"])


@pytest.mark.parametrize(
    ("engine", "text", "setting"),
    [
        ("postgresql", "TimeZone = 'Etc/UTC'\n", "TimeZone"),
        ("postgresql", "timezone = 'Etc/UTC'\n", "TimeZone"),
        ("postgresql", "WORK_MEM = 8MB\n", "work_mem"),
        ("firebird", "defaultdbcachepages = 512\n", "DefaultDbCachePages"),
    ],
)
def test_names_are_read_in_any_case(
    homes_with_engines: Path, tmp_path: Path, engine: str, text: str, setting: str
) -> None:
    try:
        here = registry.locate(Reference(engine))
    except DynoError as missing:
        pytest.skip(f"{engine} cannot be had here: {missing.message}")
    (tmp_path / "own.conf").write_text(text)
    found = read_configuration(registry.engine(engine), here, "own.conf", tmp_path)
    assert list(found.settings) == [f"config.{setting}"] and not found.not_taken


EXPORTS = {
    "rds": json.dumps(
        {
            "Parameters": [
                {"ParameterName": "max_connections", "ParameterValue": "77", "Source": "user"},
                {"ParameterName": "datadir", "ParameterValue": "/rdsdbdata/db/", "Source": "system"},
                {"ParameterName": "autocommit", "Source": "engine-default"},
                {"ParameterName": "sort_buffer_size", "ParameterValue": "{DBInstanceClassMemory/99}"},
            ]
        }
    ),
    "cloud sql": json.dumps({"settings": {"databaseFlags": [{"name": "max_connections", "value": "77"}]}}),
    "cloud sql in YAML": (
        "name: shop\nsettings:\n  databaseFlags:\n  - name: max_connections\n    value: '77'\n  tier: small\n"
    ),
}


@pytest.mark.parametrize("engine", ["mariadb", "mysql", "postgresql"])
@pytest.mark.parametrize("case", EXPORTS)
def test_what_a_cloud_exports_is_read_as_what_it_is(read: Read, engine: str, case: str) -> None:
    found = read(engine, EXPORTS[case])
    assert found.settings == {"config.max_connections": "77"}
    assert [one.line for one in found.not_taken] == ([2, 4] if case == "rds" else [])
    count = found.lines
    assert count is not None
    assert count.whole == count.silent + count.again + len(found.not_taken) + len(found.settings)


def test_a_file_that_gives_nothing_is_no_base_of_a_study(read: Read) -> None:
    for text in ("", "# nothing\n", "[mysqld]\nport = 3307\n"):
        with pytest.raises(NoConfiguration, match="sets what a study can take"):
            require_settings(read("mariadb", text))


def test_a_binary_log_without_its_path_gives_no_warning(of_options: Installation, tmp_path: Path) -> None:
    """The path in a file is of the server that it was written for."""
    life = registry.engine(of_options.engine).life
    life.initialise(of_options, tmp_path / "data", {})
    with tempfile.TemporaryDirectory(prefix="dyno-") as runtime:
        server = life.start(of_options, tmp_path / "data", Path(runtime), {"log_bin": True}, Launch())
        try:
            assert query(server.url, "SELECT @@log_bin") == [[1.0]]
            assert server.log_problems() == []
        finally:
            server.kill()
