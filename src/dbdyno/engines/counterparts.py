"""What settings of one engine are called in the others, for whoever knows another engine better."""

from __future__ import annotations

from collections.abc import Mapping

COUNTERPARTS: tuple[Mapping[str, str], ...] = (
    {
        "mariadb": "innodb_buffer_pool_size",
        "mysql": "innodb_buffer_pool_size",
        "postgresql": "shared_buffers",
        "firebird": "DefaultDbCachePages",
        "sqlite": "cache_size",
    },
    {
        "mariadb": "innodb_flush_log_at_trx_commit",
        "mysql": "innodb_flush_log_at_trx_commit",
        "postgresql": "synchronous_commit",
        "firebird": "forced_writes",
        "sqlite": "synchronous",
    },
    {
        "mariadb": "innodb_log_file_size",
        "mysql": "innodb_redo_log_capacity",
        "postgresql": "max_wal_size",
        "sqlite": "wal_autocheckpoint",
    },
    {"mariadb": "innodb_doublewrite", "mysql": "innodb_doublewrite", "postgresql": "full_page_writes"},
    {
        "mariadb": "sort_buffer_size",
        "mysql": "sort_buffer_size",
        "postgresql": "work_mem",
        "firebird": "TempCacheLimit",
    },
    {
        "mariadb": "innodb_page_size",
        "mysql": "innodb_page_size",
        "firebird": "page_size",
        "sqlite": "page_size",
    },
    {"mariadb": "innodb_flush_method", "mysql": "innodb_flush_method", "postgresql": "wal_sync_method"},
)
"""Settings of one purpose, by engine. They are not equal: units and effects differ."""


def counterpart(name: str, engine: str) -> tuple[str, str]:
    """An engine that has a setting of this name, and what serves its purpose in `engine`; two empty texts
    where that is not known."""
    folded = name.casefold()
    for settings in COUNTERPARTS:
        owner = next((owner for owner, own in settings.items() if own.casefold() == folded), "")
        if owner and engine in settings:
            return owner, settings[engine]
    return "", ""
