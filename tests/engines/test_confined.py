"""No setting of a study makes a server reach beyond its own folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.configuration import reach
from dbdyno.frozen import Level

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "layers.md"


@pytest.mark.parametrize(
    ("engine", "name", "level"),
    [
        ("mariadb", "general_log_file", "/etc/cron.d/dyno"),
        ("mariadb", "general_log_file", "../../victim"),
        ("mariadb", "log_bin", "/tmp/binlog"),
        ("mariadb", "log_bin", "a/../../binlog"),
        ("mariadb", "innodb_data_file_path", "/tmp/ibdata1:12M:autoextend"),
        ("mariadb", "innodb_data_file_path", "ibdata1:12M;/tmp/ibdata2:12M:autoextend"),
        ("mariadb", "innodb_tmpdir", "/tmp"),
        ("mariadb", "init_file", "~/init.sql"),
        ("mariadb", "init_connect", "SELECT 1 INTO OUTFILE '/tmp/victim'"),
        ("mariadb", "debug", "d:t:o,/tmp/trace"),
        ("mysql", "innodb_redo_log_archive_dirs", "label:/tmp"),
        ("postgresql", "archive_command", "cp %p ."),
        ("postgresql", "archive_command", "true"),
        ("postgresql", "restore_command", "cp x %p"),
        ("postgresql", "shared_preload_libraries", "pg_stat_statements,/tmp/x.so"),
        ("postgresql", "dynamic_library_path", "$libdir:/tmp"),
        ("postgresql", "ssl_key_file", "/etc/ssl/private/key"),
        ("firebird", "ExternalFileAccess", "Full"),
        ("firebird", "ExternalFileAccess", "Restrict /etc"),
        ("firebird", "TempDirectories", "/tmp"),
        ("firebird", "DatabaseAccess", "Restrict $(root)"),
    ],
)
def test_a_level_that_reaches_out_is_known(engine: str, name: str, level: Level) -> None:
    assert reach(name, level, registry.engine(engine).settings.CONFINED)


@pytest.mark.parametrize(
    ("engine", "name", "level"),
    [
        ("mariadb", "log_bin", "binlog"),
        ("mariadb", "log_bin", True),
        ("mariadb", "innodb_data_file_path", "ibdata1:12M:autoextend"),
        ("mariadb", "ft_boolean_syntax", '+ -><()~*:""&|'),
        ("mariadb", "innodb_buffer_pool_size", "1G"),
        ("mariadb", "sql_mode", ""),
        ("postgresql", "TimeZone", "Europe/Berlin"),
        ("postgresql", "archive_command", ""),
        ("postgresql", "search_path", '"$user", public'),
        ("postgresql", "shared_preload_libraries", "pg_stat_statements"),
        ("postgresql", "log_line_prefix", "%m [%p] / "),
        ("firebird", "ExternalFileAccess", "None"),
        ("firebird", "DefaultDbCachePages", 2048),
        ("sqlite", "cache_size", -2000),
    ],
)
def test_a_level_within_is_a_level(engine: str, name: str, level: Level) -> None:
    assert not reach(name, level, registry.engine(engine).settings.CONFINED)


@pytest.mark.parametrize(
    ("level", "allowed", "within"),
    [
        ("/srv/logs/general.log", "/srv/logs", True),
        ("/srv/logs/general.log", "/srv/logs/general.log", True),
        ("/srv//logs/./general.log", "/srv/logs", True),
        ("ibdata1:12M;/srv/logs/ibdata2:12M:autoextend", "/srv/logs", True),
        ("/srv/logs-of-others/x", "/srv/logs", False),
        ("/srv", "/srv/logs", False),
        ("/srv/logs/../victim", "/srv/logs", False),
        ("../../srv/logs", "/srv/logs", False),
        ("~/logs", "/srv/logs", False),
        ("/srv/logs/a,/etc/victim", "/srv/logs", False),
        # One path whose name has a blank, or two words: only the server knows.
        ("/srv/logs of others/x", "/srv/logs", False),
    ],
)
def test_an_allowed_path_and_nothing_else_is_as_good_as_the_servers_own(
    level: str, allowed: str, within: bool
) -> None:
    confined = registry.engine("mariadb").settings.CONFINED
    assert reach("general_log_file", level, confined), "unless it is allowed"
    assert (reach("general_log_file", level, confined, [Path(allowed)]) is None) == within


def test_a_link_within_an_allowed_folder_allows_nothing_else(tmp_path: Path) -> None:
    allowed, victim = tmp_path / "allowed", tmp_path / "victim"
    allowed.mkdir()
    (allowed / "link").symlink_to(victim)
    assert reach("general_log_file", f"{allowed}/file", {}, [allowed]) is None
    found = reach("general_log_file", f"{allowed}/link/file", {}, [allowed])
    assert found and f"{allowed}/link/file" in found.reason


@pytest.mark.parametrize(
    ("name", "level", "remedy"),
    [
        ("log_directory", "/srv/logs", "--allow-path /srv/logs"),
        ("log_directory", "../logs", "written from the root"),
        ("log_directory", "/srv/kept of others", "allow its folder, --allow-path /srv"),
        ("archive_command", "cp %p /srv/kept", "no option allows a program"),
        ("log_directory", "$(root)/logs", "without a variable"),
    ],
)
def test_a_refusal_says_what_would_allow_it(name: str, level: str, remedy: str) -> None:
    found = reach(name, level, registry.engine("postgresql").settings.CONFINED, [Path("/srv/kept")])
    assert found and remedy in found.remedy


@pytest.mark.parametrize("name", registry.ENGINES)
def test_the_documentation_names_the_settings_that_are_confined(name: str) -> None:
    engine = registry.engine(name)
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {engine.title} |")]
    for setting, levels in engine.settings.CONFINED.items():
        shown = [f"`{level}`" if level else "empty" for level in levels]
        told = f"| {', '.join(shown)} |"
        assert any(f"`{setting}`" in row and row.endswith(told) for row in rows), setting
