"""MySQL's settings: what this build knows, and what a server that runs has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.engines.engine import Refused, Risk, risked
from dbdyno.engines.facts import ConfigurationLine, SettingNeed
from dbdyno.engines.mariadb import option_file
from dbdyno.engines.mariadb import settings as mariadb
from dbdyno.engines.mariadb import settings as of_mariadb
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss
from dbdyno.study.nouns import Promise

CREATION = frozenset(
    {
        "character_set_server",
        "collation_server",
        "default_storage_engine",
        "innodb_checksum_algorithm",
        "innodb_data_file_path",
        "innodb_data_home_dir",
        "innodb_default_row_format",
        "innodb_file_per_table",
        "innodb_page_size",
        "innodb_undo_directory",
        "lower_case_table_names",
    }
)

LOADING: Mapping[str, Level] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_flush_log_at_trx_commit": 0,
    "disable_log_bin": "ON",
}
"""Of no use to a trial, which is measured under the study's own settings."""

LOGGED: Mapping[str, Level] = {**mariadb.LOGGED, "log_slow_extra": "ON"}

OURS = mariadb.OURS | frozenset(
    {"initialize", "initialize_insecure", "init_file", "mysqlx", "secure_file_priv"}
)
"""Settings that Dyno sets itself so that the server stays private; a study cannot vary them."""

REPLICATING = ("semisync_source.so", "semisync_replica.so", "group_replication.so")
"""Plug-ins that `cluster.kind` loads. Their settings are asked for with those of the server."""
OF_REPLICATING = ("rpl_semi_sync_", "group_replication_")
"""How their names begin."""

BINARY_LOG = (
    "binlog_cache_size",
    "binlog_format",
    "binlog_group_commit_sync_delay",
    "binlog_group_commit_sync_no_delay_count",
    "binlog_order_commits",
    "binlog_row_image",
    "binlog_stmt_cache_size",
    "max_binlog_cache_size",
    "max_binlog_size",
    "sync_binlog",
)

NEEDS: Sequence[SettingNeed] = (
    SettingNeed(BINARY_LOG, "log_bin", off=("OFF",), unset="ON", why="so there is no binary log"),
    SettingNeed(
        ("long_query_time", "min_examined_row_limit"),
        "slow_query_log",
        off=("OFF",),
        unset="OFF",
        why="so there is no slow log",
    ),
)

CONFINED: Mapping[str, tuple[str, ...]] = {}
DURABLE = mariadb.DURABLE
RISKS: Mapping[str, Risk] = {
    **mariadb.OF_BOTH,
    "binlog_encryption": Risk(Promise.SECURITY, ("ON",)),
    "default_table_encryption": Risk(Promise.SECURITY, ("ON",)),
    "innodb_log_checksums": Risk(Promise.INTEGRITY, ("ON",)),
    "innodb_redo_log_encrypt": Risk(Promise.SECURITY, ("ON",)),
    "innodb_undo_log_encrypt": Risk(Promise.SECURITY, ("ON",)),
}
LOSING = mariadb.LOSING
read = mariadb.read
same = mariadb.same
huge_pages = mariadb.huge_pages
memory_bytes = mariadb.memory_bytes
page_bytes = mariadb.page_bytes
proposals = mariadb.proposals
searchable = mariadb.searchable


def permits(settings: Mapping[str, Level]) -> Loss:
    return risked(RISKS, settings)


def configured(text: str, installation: Installation | None) -> list[ConfigurationLine]:
    """The lines of a `my.cnf`."""
    if installation is None:
        return list(option_file.lines(text, None, OURS))
    shown = _shown(installation, {})
    return list(option_file.lines(text, names(installation), OURS, shown.groups))


def names(installation: Installation) -> frozenset[str]:
    return frozenset(defaults(installation)) - OURS


def defaults(installation: Installation) -> dict[str, str]:
    """Every setting of this build with its default, as `--verbose --help` prints them."""
    return dict(_shown(installation, {}).values)


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    return of_mariadb.refused_by(lambda tried: _shown(installation, tried), settings)


def _shown(installation: Installation, settings: Mapping[str, Level]) -> of_mariadb.Shown:
    folder = plugin_folder(installation)
    there = ";".join(name for name in REPLICATING if (folder / name).is_file())
    plugins = [f"--plugin-load-add={there}"] if there else []
    return of_mariadb.shown_by(installation.command, (*folders(installation), *plugins), settings)


def plugin_folder(installation: Installation) -> Path:
    """Where this build has its plug-ins."""
    prefix = _prefix(installation)
    parts = [prefix / part for part in ("lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin")]
    return next((one for one in parts if one.is_dir()), parts[0])


def _prefix(installation: Installation) -> Path:
    return Path(installation.command[-1]).parent.parent


def folders(installation: Installation) -> list[str]:
    """The options that lead the server to its own messages, character sets and plug-ins."""
    prefix = _prefix(installation)
    # Packages of RPM have the version in its name.
    shares = [prefix / "share/mysql", *sorted((prefix / "share").glob("mysql-*")), prefix / "share"]
    share = next((one for one in shares if (one / "charsets").is_dir()), shares[0])
    root = ["--user=root"] if os.getuid() == 0 else []
    return [
        f"--basedir={prefix}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={plugin_folder(installation)}",
        "--secure-file-priv=NULL",
        *root,
    ]
