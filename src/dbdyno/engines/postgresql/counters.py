"""PostgreSQL's own counters: its statistics views."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines import counting
from dbdyno.engines.counting import Proofs, View, numbers, proved, viewed
from dbdyno.engines.engine import Ask
from dbdyno.records.record import Reading

PROOFS: Proofs = {
    "shared_buffers": ("blks_hit", "blks_read"),
    "effective_cache_size": ("blks_read",),
    "work_mem": ("temp_files", "temp_bytes"),
    "synchronous_commit": ("wal_sync", "wal_write"),
    "fsync": ("wal_sync", "wal_write"),
    "wal_sync_method": ("wal_sync",),
    "wal_buffers": ("wal_buffers_full",),
    "wal_compression": ("wal_fpi", "wal_bytes"),
    "full_page_writes": ("wal_fpi", "wal_bytes"),
    "max_wal_size": ("checkpoints_req", "num_requested"),
    "checkpoint_timeout": ("checkpoints_timed", "num_timed"),
    "commit_delay": ("wal_sync",),
}

STATUS_SQL = (
    "SELECT * FROM pg_stat_database WHERE datname = current_database()",
    "SELECT * FROM pg_stat_wal",
    "SELECT * FROM pg_stat_bgwriter",
    "SELECT * FROM pg_stat_checkpointer",
)

PARTIAL = frozenset({"effective_cache_size", "work_mem"})
"""Settings that also make other plans, which no counter sees: that these stand still proves nothing."""

VIEW: View = {
    "blocks found in shared buffers": (1.0, ("blks_hit",)),
    "blocks read": (1.0, ("blks_read",)),
    "rows fetched": (1.0, ("tup_fetched",)),
    "write-ahead log, bytes": (1.0, ("wal_bytes",)),
    "write-ahead log syncs": (1.0, ("wal_sync",)),
    "waits for the log's buffers": (1.0, ("wal_buffers_full",)),
    "buffers written by back ends": (1.0, ("buffers_backend",)),
    "temporary files, bytes": (1.0, ("temp_bytes",)),
    "deadlocks": (1.0, ("deadlocks",)),
}
"""What it says of its own time, from its statistics views."""

CACHE_MISSES = "blks_read"


HELD_SQL = (
    "SELECT 'undo', COALESCE(SUM(n_dead_tup), 0) FROM pg_stat_user_tables"
    " UNION ALL SELECT 'redo_bytes', SUM(size) FROM pg_ls_waldir()"
)


def held(ask: Ask) -> dict[str, float]:
    return numbers(ask(HELD_SQL))


def status(ask: Ask) -> dict[str, float]:
    views = {str(row[0]) for row in ask("SELECT viewname FROM pg_views WHERE viewname LIKE 'pg_stat%'")}
    values: dict[str, float] = {}
    for sql in STATUS_SQL:
        view = sql.split()[3]
        if view in views:
            rows = ask(f"SELECT key, value FROM json_each_text((SELECT row_to_json(s) FROM ({sql}) s))")
            values |= numbers(rows)
    return values


def view(gained: Mapping[str, float]) -> dict[str, float]:
    return viewed(VIEW, gained)


def exercised(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
    return proved(PROOFS, name, before, after, "pg_stat views")


def unmoved(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return counting.unmoved(PROOFS, PARTIAL, name, before, after)
