"""What is known of MySQL: it is deployed as MariaDB with other names; its plans, and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbdyno.engines import facts
from dbdyno.engines.engine import Ask, LockViews
from dbdyno.engines.facts import (
    OF_INFORMATION_SCHEMA,
    SCHEMA_OF_MYSQL,
    ComparedBy,
    PlanStep,
    Proofs,
    RowWords,
    SchemaQuery,
    View,
    numbers,
    proved,
    viewed,
    without_values,
)
from dbdyno.engines.mariadb import facts as mariadb
from dbdyno.engines.mariadb.facts import PRODUCTION as OF_MARIADB
from dbdyno.records.load_words import SchemaNote
from dbdyno.records.record import Reading

PRODUCTION = replace(
    OF_MARIADB,
    folder="/etc/mysql/mysql.conf.d",
    service="mysql",
    client="mysql --batch --skip-column-names --execute",
)


COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="DATABASE()"),
    quote="`",
    defaults="SELECT v.variable_name, v.variable_value FROM performance_schema.global_variables v"
    " JOIN performance_schema.variables_info i ON i.variable_name = v.variable_name"
    " WHERE i.variable_source = 'COMPILED'",
    schema=(
        *SCHEMA_OF_MYSQL,
        SchemaQuery(
            ("checks",),
            "SELECT CONCAT('check ', t.table_name, '.', t.constraint_name), c.check_clause"
            " FROM information_schema.check_constraints c JOIN information_schema.table_constraints t"
            " ON t.constraint_schema = c.constraint_schema AND t.constraint_name = c.constraint_name"
            " WHERE c.constraint_schema = DATABASE()",
        ),
    ),
    notes=(
        SchemaNote(
            what="character set|collation",
            value="utf8mb4(_0900_.*)?",
            says="utf8mb4 is the default character set in place of latin1, and utf8mb4_0900_ai_ci its"
            " collation: text sorts and compares otherwise, and trailing blanks count",
            since="8.0.1",
            source="https://dev.mysql.com/doc/refman/8.0/en/upgrading-from-previous-series.html",
        ),
        SchemaNote(
            what="type",
            value=r"(tiny|small|medium|big)?int(\(\d+\))?( unsigned)?",
            says="the display width of whole numbers is told no more, and the values are the same",
            since="8.0.19",
            source="https://dev.mysql.com/worklog/task/?id=13528",
        ),
        SchemaNote(
            what="default|extra|takes NULL",
            value="current_timestamp.*|on update current_timestamp.*|0000-00-00 00:00:00",
            says="explicit_defaults_for_timestamp is on by default: a TIMESTAMP gets no default and no"
            " ON UPDATE by itself, and may be NULL",
            since="8.0.2",
            source="https://dev.mysql.com/worklog/task/?id=9687",
        ),
        SchemaNote(
            what="name",
            value="reserved",
            says="statements that name it without quotes fail",
            source="https://dev.mysql.com/doc/refman/en/keywords.html",
        ),
    ),
)


_COSTS = re.compile(r"\s*\((?:cost|actual|rows)=?[^()]*\)")
_TERMS = re.compile(r"\s*\((?P<terms>.*)\)$")


def read(text: str) -> tuple[PlanStep, ...]:
    """The steps of a plan. Raises ValueError."""
    document = json.loads(text)
    plan = document.get("query_plan") if isinstance(document, dict) else None
    if plan is None:
        return mariadb.read(text)
    return (_step(plan),)


def _step(node: dict[str, Any]) -> PlanStep:
    operation = _COSTS.sub("", str(node.get("operation", "step")))
    terms = _TERMS.search(operation)
    title = without_values(operation[: terms.start()] if terms else operation).rstrip(":")
    condition = node.get("lookup_condition") or node.get("condition") or (terms["terms"] if terms else "")
    return PlanStep(
        title=f"{title[:1].lower()}{title[1:]}",
        details=(without_values(str(condition)),) if condition else (),
        inputs=tuple(_step(inner) for inner in node.get("inputs", ())),
    )


PROOFS: Proofs = {
    **mariadb.PROOFS,
    "innodb_redo_log_capacity": ("Innodb_buffer_pool_pages_flushed", "Innodb_os_log_written"),
    "sync_binlog": ("Com_commit",),
}

VIEW: View = mariadb.VIEW

CACHE_MISSES = ""
status = mariadb.status
sampled = mariadb.sampled
METER = mariadb.METER

ROWS = RowWords(
    size=mariadb.SIZE_OF_TABLES.format(tablespaces="innodb_tablespaces"),
    changed="SELECT object_name, count_insert + count_update + count_delete"
    " FROM performance_schema.table_io_waits_summary_by_table"
    " WHERE object_schema = DATABASE() AND object_type = 'TABLE'",
)

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


WAITS_SQL = (
    "SELECT COALESCE(NULLIF(processlist_state, ''), processlist_command), COUNT(*)"
    " FROM performance_schema.threads WHERE type = 'FOREGROUND' AND processlist_id <> CONNECTION_ID()"
    " AND processlist_command NOT IN ('Sleep', 'Daemon') GROUP BY 1"
)


def waits(ask: Ask) -> dict[str, float]:
    return numbers(ask(WAITS_SQL))


LOCKS = LockViews(
    own=mariadb.OWN_SESSION,
    end=mariadb.END_SESSION,
    blocked="SELECT x.waiting_pid, x.waiting_query, x.blocking_pid, COALESCE(x.blocking_query,"
    " 'a transaction without a statement now'), 'row lock', 0 FROM sys.innodb_lock_waits x"
    " UNION ALL SELECT x.waiting_pid, x.waiting_query, x.blocking_pid, COALESCE(t.processlist_info,"
    " 'a transaction without a statement now'), CONCAT('metadata lock: ', x.waiting_lock_type), 0"
    " FROM sys.schema_table_lock_waits x JOIN performance_schema.threads t"
    " ON t.processlist_id = x.blocking_pid WHERE x.waiting_pid <> x.blocking_pid",
)


def view(gained: Mapping[str, float]) -> dict[str, float]:
    return viewed(VIEW, gained)


def exercised(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
    return proved(PROOFS, name, before, after, "SHOW GLOBAL STATUS")


def unmoved(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return facts.unmoved(PROOFS, mariadb.PARTIAL, name, before, after)
