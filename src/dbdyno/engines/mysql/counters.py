"""MySQL's own counters: `SHOW GLOBAL STATUS`. Their names are MariaDB's, as far as both still have them."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines import counting
from dbdyno.engines.counting import Proofs, View, numbers, proved, viewed
from dbdyno.engines.engine import Ask
from dbdyno.engines.mariadb import counters as mariadb
from dbdyno.records.record import Reading

PROOFS: Proofs = {
    **mariadb.PROOFS,
    "innodb_redo_log_capacity": ("Innodb_buffer_pool_pages_flushed", "Innodb_os_log_written"),
    "sync_binlog": ("Com_commit",),
}

VIEW: View = mariadb.VIEW

CACHE_MISSES = ""
status = mariadb.status

HELD_SQL = (
    "SELECT 'undo', `count` FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"
    " UNION ALL SELECT 'heap_bytes', SUM(current_number_of_bytes_used)"
    " FROM performance_schema.memory_summary_global_by_event_name"
    " HAVING SUM(current_number_of_bytes_used) > 0"
    " UNION ALL SELECT 'redo_bytes', variable_value FROM performance_schema.global_status"
    " WHERE variable_name = 'Innodb_redo_log_logical_size'"
    " UNION ALL SELECT 'cache_bytes', variable_value FROM performance_schema.global_status"
    " WHERE variable_name = 'Innodb_buffer_pool_bytes_data'"
)
"""Memory is counted where the performance schema is on."""


def held(ask: Ask) -> dict[str, float]:
    return numbers(ask(HELD_SQL))


def view(gained: Mapping[str, float]) -> dict[str, float]:
    return viewed(VIEW, gained)


def exercised(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
    return proved(PROOFS, name, before, after, "SHOW GLOBAL STATUS")


def unmoved(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return counting.unmoved(PROOFS, mariadb.PARTIAL, name, before, after)
