"""MariaDB's own counters: `SHOW GLOBAL STATUS`."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines import counting
from dbdyno.engines.counting import Proofs, View, numbers, proved, viewed
from dbdyno.engines.engine import Ask
from dbdyno.records.record import Reading

PROOFS: Proofs = {
    "innodb_buffer_pool_size": ("Innodb_buffer_pool_reads", "Innodb_buffer_pool_read_requests"),
    "innodb_flush_log_at_trx_commit": ("Innodb_os_log_fsyncs", "Innodb_data_fsyncs", "Innodb_os_log_written"),
    "innodb_log_file_size": ("Innodb_buffer_pool_pages_flushed", "Innodb_os_log_written"),
    "innodb_log_buffer_size": ("Innodb_log_waits", "Innodb_log_write_requests"),
    "innodb_doublewrite": ("Innodb_dblwr_writes", "Innodb_dblwr_pages_written"),
    "innodb_adaptive_hash_index": (
        "Innodb_adaptive_hash_hash_searches",
        "Innodb_adaptive_hash_non_hash_searches",
    ),
    "innodb_io_capacity": ("Innodb_buffer_pool_pages_flushed",),
    "innodb_io_capacity_max": ("Innodb_buffer_pool_pages_flushed",),
    "innodb_flush_method": ("Innodb_data_reads", "Innodb_data_writes", "Innodb_data_fsyncs"),
    "innodb_flush_neighbors": ("Innodb_buffer_pool_pages_flushed",),
    "innodb_change_buffering": ("Innodb_ibuf_merges",),
    "sync_binlog": ("Binlog_commits", "Binlog_group_commits"),
    "log_bin": ("Binlog_commits",),
    "query_cache_size": ("Qcache_hits", "Qcache_inserts"),
    "query_cache_type": ("Qcache_hits", "Qcache_inserts"),
    "table_open_cache": ("Table_open_cache_misses", "Table_open_cache_overflows"),
    "thread_cache_size": ("Threads_created",),
    "thread_handling": ("Threadpool_threads", "Threads_created"),
    "tmp_table_size": ("Created_tmp_tables", "Created_tmp_disk_tables"),
    "max_heap_table_size": ("Created_tmp_tables", "Created_tmp_disk_tables"),
    "sort_buffer_size": ("Sort_rows", "Sort_merge_passes"),
    "join_buffer_size": ("Select_full_join",),
    "key_buffer_size": ("Key_read_requests", "Key_reads"),
    "aria_pagecache_buffer_size": ("Aria_pagecache_read_requests", "Aria_pagecache_reads"),
}

PARTIAL = frozenset({"innodb_buffer_pool_size", "thread_cache_size", "thread_handling"})
"""Settings of whose use these counters see but a part: that they stand still proves nothing."""

VIEW: View = {
    "rows read": (
        1.0,
        ("Handler_read_key", "Handler_read_next", "Handler_read_rnd", "Handler_read_rnd_next"),
    ),
    "buffer pool page requests": (1.0, ("Innodb_buffer_pool_read_requests",)),
    "pages read from storage": (1.0, ("Innodb_buffer_pool_reads",)),
    "page writes": (1.0, ("Innodb_data_writes",)),
    "syncs": (1.0, ("Innodb_data_fsyncs", "Innodb_os_log_fsyncs")),
    "redo log, bytes": (1.0, ("Innodb_os_log_written",)),
    "waits for the log buffer": (1.0, ("Innodb_log_waits",)),
    "row locks waited for": (1.0, ("Innodb_row_lock_waits",)),
    "row lock wait, us": (1000.0, ("Innodb_row_lock_time",)),
    "temporary tables on disk": (1.0, ("Created_tmp_disk_tables",)),
}
"""What it says of its own time (`SHOW GLOBAL STATUS`); a lock's wait is counted in milliseconds there. The
cache of vector indexes has no counter: what it misses shows as page requests."""

CACHE_MISSES = "Innodb_buffer_pool_read_requests"
"""The cache of a vector index has no counter. What it misses is read through the buffer pool."""


HELD = {
    "Memory_used": "heap_bytes",
    "Innodb_buffer_pool_bytes_data": "cache_bytes",
    "Innodb_history_list_length": "undo",
    "Innodb_checkpoint_age": "redo_bytes",
}
"""The gauges that its status variables tell."""


def held(ask: Ask) -> dict[str, float]:
    names = ", ".join(f"'{name}'" for name in HELD)
    told = numbers(ask(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})"))
    return {HELD[name]: value for name, value in told.items()}


def status(ask: Ask) -> dict[str, float]:
    return numbers(ask("SHOW GLOBAL STATUS"))


def view(gained: Mapping[str, float]) -> dict[str, float]:
    return viewed(VIEW, gained)


def exercised(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
    return proved(PROOFS, name, before, after, "SHOW GLOBAL STATUS")


def unmoved(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return counting.unmoved(PROOFS, PARTIAL, name, before, after)
