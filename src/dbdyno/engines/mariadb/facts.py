"""What is known of MariaDB: how it is deployed and compared, its plans, and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.engines import facts
from dbdyno.engines.engine import Ask, LockViews, StatementMeter
from dbdyno.engines.facts import (
    OF_INFORMATION_SCHEMA,
    SCHEMA_OF_MYSQL,
    ComparedBy,
    PlanStep,
    Production,
    Proofs,
    RowWords,
    SchemaQuery,
    View,
    counters_of,
    numbers,
    proved,
    rows_of_plan_step,
    viewed,
    without_values,
)
from dbdyno.engines.mariadb.settings import is_switched_on, option
from dbdyno.frozen import Level
from dbdyno.records.load_words import SchemaNote
from dbdyno.records.record import Reading

PLAIN = re.compile(r"[\w.,:=+/-]+")
"""What stands in an option file without quotes."""


def written(settings: Mapping[str, Level]) -> str:
    """An option file for the server of every version."""
    return "\n".join(["[mysqld]", *(_line(name, level) for name, level in settings.items())]) + "\n"


def _line(name: str, level: Level) -> str:
    """As on the command line, where some settings are switched by their names alone."""
    key, given, value = option(name, level).removeprefix("--").partition("=")
    # A log that is switched on keeps the file that the server in production gives it.
    named = given and not is_switched_on(name, level)
    return f"{key.replace('-', '_')} = {_quoted(value)}" if named else key.replace("-", "_")


def _quoted(value: str) -> str:
    """The server reads escapes in quotes as well."""
    if PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


PRODUCTION = Production(
    file="90-dyno.cnf",
    written=written,
    version_sql="SELECT VERSION()",
    data_sql="SELECT @@datadir",
    protocols=("mysql", "mariadb"),
    folder="/etc/mysql/mariadb.conf.d",
    service="mariadb",
    port=3306,
    client="mariadb --batch --skip-column-names --execute",
    limits={"open_files_limit": "LimitNOFILE"},
    release_parts=2,
)


COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="DATABASE()"),
    quote="`",
    defaults="SELECT LOWER(variable_name), default_value FROM information_schema.system_variables",
    schema=(
        *SCHEMA_OF_MYSQL,
        SchemaQuery(
            ("checks",),
            "SELECT CONCAT('check ', table_name, '.', constraint_name), check_clause"
            " FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()",
        ),
    ),
    notes=(
        SchemaNote(
            what="character set|collation",
            value="utf8mb4(_uca1400_.*)?",
            says="utf8mb4 is the default character set in place of latin1, and utf8mb4_uca1400_ai_ci its"
            " collation: text sorts and compares otherwise, and an index on it holds more bytes",
            since="11.6; packages of Debian had utf8mb4_general_ci before",
            source="https://mariadb.com/kb/en/setting-character-sets-and-collations",
        ),
        SchemaNote(
            what="character set|collation",
            value="utf8mb3(_.*)?",
            says="utf8 is called utf8mb3, and holds the same letters",
            since="10.6",
            source="https://mariadb.com/kb/en/changes-improvements-in-mariadb-106/#character-sets",
        ),
        SchemaNote(
            what="default|extra|takes NULL",
            value="current_timestamp.*|on update current_timestamp.*|'?0000-00-00 00:00:00'?",
            says="explicit_defaults_for_timestamp is on by default: a TIMESTAMP gets no default and no"
            " ON UPDATE by itself, and may be NULL",
            since="10.10",
            source="https://mariadb.com/kb/en/server-system-variables/#explicit_defaults_for_timestamp",
        ),
        SchemaNote(
            what="checks|type",
            value="json_valid.*|longtext|json",
            says="JSON is another name of LONGTEXT, and a check keeps it valid",
            since="10.4 with the check",
            source="https://mariadb.com/kb/en/json-data-type/",
        ),
        SchemaNote(
            what="name",
            value="reserved",
            says="statements that name it without quotes fail",
            source="https://mariadb.com/kb/en/reserved-words/",
        ),
    ),
)


ACCESS = {
    "ALL": "full scan",
    "index": "full index scan",
    "range": "range scan",
    "ref": "index lookup",
    "ref_or_null": "index lookup with null",
    "eq_ref": "unique lookup",
    "const": "constant row",
    "system": "constant row",
    "fulltext": "full-text search",
    "index_merge": "index merge",
}
"""Types of access in words."""
CHANGES = ("insert", "update", "delete", "replace")
OPERATIONS = {
    "filesort": "sort",
    "ordering_operation": "sort",
    "grouping_operation": "group",
    "duplicates_removal": "distinct",
    "block-nl-join": "block nested-loop join",
    "union_result": "union",
    "materialized_from_subquery": "materialize",
    "materialized": "materialize",
    "read_sorted_file": "read what was sorted",
}
TRANSPARENT = frozenset(
    ("query_block", "table", "query_specifications", "subqueries", "query_plan", "insert_from")
)
"""What holds steps and is none."""
CONDITIONS = ("index_condition", "attached_condition", "sort_key", "message")
FLAGS = {
    "using_index": "covering",
    "using_index_for_group_by": "for groups",
    "backward_index_scan": "backward",
    "using_temporary_table": "in a temporary table",
    "using_filesort": "sorted",
    "using_MRR": "multi-range read",
    "distinct": "distinct",
    "not_exists": "not exists",
    "dependent": "dependent",
}
FACTS = ("using_join_buffer", "join_type", "buffer_type", "mrr_type", "first_match", "operation")


def read(text: str) -> tuple[PlanStep, ...]:
    """The steps of a plan. Raises ValueError."""
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the plan is no object")
    return tuple(_steps(document))


def _steps(value: object, join: str = "nested loop") -> Iterator[PlanStep]:
    """The steps that a part of the document holds."""
    if isinstance(value, list):
        held = [step for one in value for step in _steps(one)]
        if len(held) > 1 and join:
            yield PlanStep(title=join, inputs=tuple(held))
        else:
            yield from held
    elif isinstance(value, dict):
        if "table_name" in value or "message" in value:
            yield _table(value)
            return
        for key, inner in value.items():
            yield from _named(key, inner)


def _named(key: str, value: object) -> Iterator[PlanStep]:
    if not isinstance(value, dict | list) or key in ("cost_info", "used_columns", "rowid_filter"):
        return
    held = tuple(_steps(value, join="" if key in TRANSPARENT else "nested loop"))
    if not held or key in TRANSPARENT or (key == "nested_loop" and len(held) <= 1):
        yield from held
    elif isinstance(value, list):
        yield from held if key == "nested_loop" else (PlanStep(title=_operation(key, {}), inputs=held),)
    else:
        yield PlanStep(title=_operation(key, value), details=tuple(_details(value)), inputs=held)


def _operation(key: str, value: dict[str, Any]) -> str:
    if value.get("join_type") == "BNLH":
        return "hash join"
    if value.get("using_filesort") is False:
        return f"{OPERATIONS.get(key, key)} by an index"
    return OPERATIONS.get(key, key.replace("_", " ").replace("-", " "))


def _table(value: dict[str, Any]) -> PlanStep:
    """The access to one table, with what must be done before it."""
    inputs = tuple(step for key, inner in value.items() for step in _named(key, inner))
    rows = rows_of_plan_step(value, "rows", "r_rows")
    return PlanStep(title=_title(value), details=tuple(_details(value)), inputs=inputs, rows=rows)


def _title(value: dict[str, Any]) -> str:
    table, key = str(value.get("table_name", "")), value.get("key")
    change = next((change for change in CHANGES if value.get(change)), "")
    if not table:
        return "no table"
    if change in ("insert", "replace"):
        return f"{change} {table}"
    if "access_type" not in value:
        return f"write {table}"
    access = str(value["access_type"])
    on = f"{table}.{key}" if key else table
    join = f"{value['using_join_buffer']}: ".lower() if value.get("using_join_buffer") else ""
    return f"{join}{ACCESS.get(access, access)} {on}" + (f" to {change}" if change else "")


def _details(value: dict[str, Any]) -> Iterator[str]:
    if parts := value.get("used_key_parts"):
        yield f"by {', '.join(map(str, parts))}"
    for key in CONDITIONS:
        if value.get(key):
            yield f"{key.replace('_', ' ')} {without_values(str(value[key]))}"
    for key, words in FLAGS.items():
        if value.get(key) is True:
            yield words
    for key in FACTS:
        if value.get(key):
            yield f"{key.replace('_', ' ')} {value[key]}"


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


SIZE_OF_TABLES = (
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()"
    " AND table_type = 'BASE TABLE' AND engine <> 'InnoDB') THEN NULL ELSE SUM(allocated_size) END"
    " FROM information_schema.{tablespaces} WHERE name LIKE CONCAT(DATABASE(), '/%')"
)
"""Holes that compressed pages leave in a file are not allocated."""

ROWS = RowWords(
    size=SIZE_OF_TABLES.format(tablespaces="innodb_sys_tablespaces"),
    # Temporary tables of the server's own are counted elsewhere.
    changed="SELECT '', SUM(variable_value) FROM information_schema.global_status"
    " WHERE variable_name IN ('HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE')",
)

HELD = {
    "Memory_used": "heap_bytes",
    "Innodb_buffer_pool_bytes_data": "cache_bytes",
    "Innodb_history_list_length": "undo",
    "Innodb_checkpoint_age": "redo_bytes",
}
"""The gauges that its status variables tell."""


OF_STATEMENT: View = {
    "rows read": (
        1.0,
        tuple(f"Handler_read_{one}" for one in ("first", "key", "last", "next", "prev", "rnd", "rnd_next")),
    ),
    "pages asked for": (1.0, ("Innodb_buffer_pool_read_requests",)),
    "pages read from storage": (1.0, ("Innodb_buffer_pool_reads",)),
    "temporary tables": (1.0, ("Created_tmp_tables",)),
    "temporary tables on disk": (1.0, ("Created_tmp_disk_tables",)),
    "merge passes of sorts": (1.0, ("Sort_merge_passes",)),
}
"""What a session says of one statement. Pages are the whole server's, which nobody else asks meanwhile."""

METER = StatementMeter(
    read=lambda gained: viewed(OF_STATEMENT, numbers(gained)),
    counters="SHOW SESSION STATUS WHERE Variable_name IN ({})".format(
        ", ".join(f"'{name}'" for name in counters_of(OF_STATEMENT))
    ),
)


def held(ask: Ask) -> dict[str, float]:
    names = ", ".join(f"'{name}'" for name in HELD)
    told = numbers(ask(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})"))
    return {HELD[name]: value for name, value in told.items()}


def status(ask: Ask) -> dict[str, float]:
    return numbers(ask("SHOW GLOBAL STATUS"))


def sampled(ask: Ask) -> dict[str, float]:
    names = ", ".join(f"'{name}'" for name in counters_of(VIEW))
    return numbers(ask(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})"))


WAITS_SQL = (
    "SELECT COALESCE(NULLIF(state, ''), command), COUNT(*) FROM information_schema.processlist"
    " WHERE id <> CONNECTION_ID() AND command NOT IN ('Sleep', 'Daemon') GROUP BY 1"
)


def waits(ask: Ask) -> dict[str, float]:
    return numbers(ask(WAITS_SQL))


OWN_SESSION, END_SESSION = "SELECT CONNECTION_ID()", "KILL {session}"
LOCKS = LockViews(
    own=OWN_SESSION,
    end=END_SESSION,
    # A metadata lock's holder stands in no view of a server as it is installed. What waits for a lock that a
    # transaction holds came after that; others wait for the act that changes their table.
    blocked="SELECT r.trx_mysql_thread_id, r.trx_query, b.trx_mysql_thread_id,"
    " COALESCE(b.trx_query, 'a transaction without a statement now'), 'row lock', 0"
    " FROM information_schema.innodb_lock_waits x"
    " JOIN information_schema.innodb_trx r ON r.trx_id = x.requesting_trx_id"
    " JOIN information_schema.innodb_trx b ON b.trx_id = x.blocking_trx_id"
    " UNION ALL SELECT w.id, w.info, b.trx_mysql_thread_id,"
    " COALESCE(b.trx_query, 'a transaction without a statement now'), 'metadata lock', 1"
    " FROM information_schema.processlist w JOIN information_schema.innodb_trx b"
    " ON b.trx_mysql_thread_id <> w.id AND b.trx_started <= NOW() - INTERVAL w.time SECOND"
    " WHERE w.state LIKE 'Waiting for table metadata lock%' AND w.id IN ({acts})"
    " UNION ALL SELECT w.id, w.info, b.id, b.info, 'metadata lock', 1"
    " FROM information_schema.processlist w JOIN information_schema.processlist b"
    " ON b.id IN ({acts}) AND b.command <> 'Sleep' AND b.id <> w.id"
    " AND (b.state LIKE 'Waiting for table metadata lock%' OR b.info LIKE 'ALTER%' OR b.info LIKE 'CREATE%'"
    " OR b.info LIKE 'OPTIMIZE%' OR b.info LIKE 'DROP%' OR b.info LIKE 'LOCK%')"
    " WHERE w.state LIKE 'Waiting for table metadata lock%' AND w.id NOT IN ({acts})",
)


def view(gained: Mapping[str, float]) -> dict[str, float]:
    return viewed(VIEW, gained)


def exercised(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
    return proved(PROOFS, name, before, after, "SHOW GLOBAL STATUS")


def unmoved(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return facts.unmoved(PROOFS, PARTIAL, name, before, after)
