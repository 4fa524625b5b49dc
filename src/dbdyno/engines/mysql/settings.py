"""MySQL's settings: what this build knows, and what a server that runs has."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines.engine import Refused
from dbdyno.engines.mariadb import levels
from dbdyno.engines.mariadb import settings as mariadb
from dbdyno.engines.mysql.prefix import folders
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation

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

OURS = mariadb.OURS | frozenset(
    {"initialize", "initialize_insecure", "init_file", "mysqlx", "secure_file_priv"}
)
"""Settings that Dyno sets itself so that the server stays private; a study cannot vary them."""

read = mariadb.read
same = mariadb.same
huge_pages = mariadb.huge_pages


def names(installation: Installation) -> frozenset[str]:
    return frozenset(defaults(installation)) - OURS


def defaults(installation: Installation) -> dict[str, str]:
    """Every setting of this build with its default, as `--verbose --help` prints them."""
    return dict(_shown(installation, {}).values)


def refused(installation: Installation, settings: Mapping[str, Level]) -> dict[str, Refused]:
    return levels.refused_by(lambda tried: _shown(installation, tried), settings)


def _shown(installation: Installation, settings: Mapping[str, Level]) -> levels.Shown:
    return levels.shown_by(installation.command, tuple(folders(installation)), settings)
