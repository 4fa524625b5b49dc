"""What is taken of an engine's own configuration file, and what is not and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration
from dbdyno.engines.line import A_PATH, NOT_SHOWN, OF_DYNO, OTHER_FILE, UNREADABLE
from dbdyno.frozen import Configuration, Level

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
            {2: UNREADABLE, 8: OF_DYNO, 9: OF_DYNO, 10: A_PATH, 12: NOT_SHOWN},
        ),
        (
            "postgresql",
            POSTGRESQL_CONF,
            {
                "config.shared_buffers": "64MB",
                "config.work_mem": "16MB",
                "config.search_path": "a, 'b'",
            },
            {6: OF_DYNO, 7: OF_DYNO, 8: OF_DYNO, 9: A_PATH, 11: UNREADABLE},
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
    found = read(engine, line)
    assert found.text == kept
    assert "hunter2" not in found.model_dump_json()
    assert found.digest != read(engine, f"{line}3").digest
