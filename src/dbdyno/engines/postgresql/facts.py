"""What is known of PostgreSQL: how Debian deploys it, its plans, and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.engines import facts
from dbdyno.engines.engine import Ask, LockViews, StatementMeter
from dbdyno.engines.facts import (
    OF_INFORMATION_SCHEMA,
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
from dbdyno.engines.values import as_text
from dbdyno.frozen import Level
from dbdyno.records.load_words import SchemaNote
from dbdyno.records.record import Reading

PLAIN = re.compile(r"[\w.+-]+")
"""What stands in a postgresql.conf without quotes."""


def written(settings: Mapping[str, Level]) -> str:
    """Lines of a `postgresql.conf`."""
    return "".join(f"{name} = {_quoted(as_text(level))}\n" for name, level in settings.items())


def _quoted(value: str) -> str:
    """The server reads escapes in quotes as well."""
    if PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", r"\\").replace("'", "''")
    return f"'{escaped}'"


PRODUCTION = Production(
    file="90-dyno.conf",
    written=written,
    version_sql="SHOW server_version",
    data_sql="SHOW data_directory",
    protocols=("postgresql", "postgres"),
    folder="/etc/postgresql/{release}/main/conf.d",
    service="postgresql@{release}-main",
    port=5432,
    pooled_statements="unnamed",
    # pg_ctlcluster drops the environment of its unit, and reads this file.
    environment="/etc/postgresql/{release}/main/environment",
    # Debian's cluster lets in the user of its own role, and `apply` runs as root.
    client="runuser -u postgres -- psql --no-psqlrc --no-align --tuples-only --command",
)


IN_UNITS = re.compile(r"(-?\d+(?:\.\d+)?) (\d*)([A-Za-z]+)")
"""A default in the unit of its setting: `16 8kB` are sixteen of these."""


def level(default: str) -> str:
    """A default as a study writes it: with the unit beside the number, and without one where it means off."""
    found = IN_UNITS.fullmatch(default)
    if found is None:
        return default
    amount, times, unit = float(found[1]), int(found[2] or 1), found[3]
    return f"{amount:g}" if amount <= 0 else f"{amount * times:.15g}{unit}"


OF_USERS = "{name} NOT IN ('pg_catalog', 'information_schema') AND {name} NOT LIKE 'pg\\_%'"
OF_TABLES = (
    "JOIN pg_namespace n ON n.oid = t.relnamespace AND t.relkind IN ('r', 'p', 'f') AND "
    + OF_USERS.format(name="n.nspname")
)
COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="'public'"),
    defaults="SELECT name, boot_val || COALESCE(' ' || unit, '') FROM pg_settings",
    program="SELECT version()",
    level=level,
    schema=(
        SchemaQuery(
            ("encoding", "collation", "character types", "provider", "locale", "collation version"),
            # As JSON, because some columns came with 15 and 17.
            "SELECT 'database', pg_encoding_to_char(d.encoding), d.datcollate, d.datctype,"
            " CASE to_jsonb(d)->>'datlocprovider' WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu'"
            " WHEN 'b' THEN 'builtin' END,"
            " COALESCE(to_jsonb(d)->>'datlocale', to_jsonb(d)->>'daticulocale'),"
            " (SELECT pg_collation_actual_version(c.oid) FROM pg_collation c"
            " WHERE c.collcollate = d.datcollate AND c.collprovider = 'c' ORDER BY c.oid LIMIT 1)"
            " FROM pg_database d WHERE d.datname = current_database()",
        ),
        SchemaQuery(
            ("everyone may create",),
            "SELECT 'schema ' || nspname,"
            " CASE WHEN has_schema_privilege('public', oid, 'CREATE') THEN 'yes' ELSE 'no' END"
            f" FROM pg_namespace WHERE {OF_USERS.format(name='nspname')} ORDER BY 1",
        ),
        SchemaQuery(
            ("kind", "partitioned by", "is the partition", "access method"),
            "SELECT 'table ' || t.oid::regclass, CASE t.relkind WHEN 'p' THEN 'partitioned'"
            " WHEN 'f' THEN 'foreign' ELSE 'plain' END, pg_get_partkeydef(t.oid),"
            " pg_get_expr(t.relpartbound, t.oid), m.amname FROM pg_class t"
            f" {OF_TABLES} LEFT JOIN pg_am m ON m.oid = t.relam ORDER BY 1",
        ),
        SchemaQuery(
            ("type", "collation", "not null", "default", "generated", "identity", "compression"),
            "SELECT t.oid::regclass || '.' || a.attname, format_type(a.atttypid, a.atttypmod), c.collname,"
            " CASE WHEN a.attnotnull THEN 'yes' ELSE 'no' END, COALESCE(pg_get_expr(d.adbin, d.adrelid),"
            " 'none'), CASE a.attgenerated WHEN 's' THEN 'stored' WHEN '' THEN 'no' ELSE 'virtual' END,"
            " CASE a.attidentity WHEN '' THEN 'no' ELSE 'yes' END,"
            " NULLIF(to_jsonb(a)->>'attcompression', '') FROM pg_class t"
            f" {OF_TABLES} JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped"
            " LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum"
            " LEFT JOIN pg_collation c ON c.oid = a.attcollation ORDER BY t.oid, a.attnum",
        ),
        SchemaQuery(
            ("definition",),
            "SELECT 'index ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid) FROM pg_index i"
            f" JOIN pg_class t ON t.oid = i.indrelid {OF_TABLES} ORDER BY 1",
        ),
        SchemaQuery(
            ("definition",),
            # Not those of NOT NULL, which are constraints with a name since 18: their columns tell it.
            "SELECT 'constraint ' || c.conrelid::regclass || '.' || c.conname, pg_get_constraintdef(c.oid)"
            f" FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid {OF_TABLES}"
            " WHERE c.contype <> 'n' ORDER BY 1",
        ),
    ),
    notes=(
        SchemaNote(
            what="collation version",
            value=".+",
            says="the operating system sorts text by other rules: an index on text that was made under the"
            " other version misses rows until it is built anew (REINDEX)",
            source="https://www.postgresql.org/docs/current/sql-altercollation.html",
        ),
        SchemaNote(
            what="everyone may create",
            value="no",
            says="accounts that own nothing cannot create tables in the schema public; data that were taken"
            " over keep their rights",
            since="15",
            source="https://www.postgresql.org/docs/15/release-15.html",
        ),
        SchemaNote(
            what="provider|locale",
            value="builtin|.*UTF-?8",
            says="PostgreSQL can sort by itself, and then does so by code points",
            since="17",
            source="https://www.postgresql.org/docs/17/release-17.html",
        ),
        SchemaNote(
            what="generated",
            value="virtual",
            says="a generated column is computed when it is read, unless it is told to be STORED",
            since="18",
            source="https://www.postgresql.org/docs/18/release-18.html",
        ),
        SchemaNote(
            what="name",
            value="reserved",
            says="statements that name it without quotes fail, or mean something else",
            source="https://www.postgresql.org/docs/current/sql-keywords-appendix.html",
        ),
    ),
)


AGGREGATES = {"Hashed": "hash aggregate", "Sorted": "group aggregate", "Mixed": "mixed aggregate"}
CONDITIONS = (
    "Index Cond",
    "Recheck Cond",
    "TID Cond",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
    "Order By",
    "Filter",
    "One-Time Filter",
    "Cache Key",
)
LISTS = ("Sort Key", "Presorted Key", "Group Key", "Conflict Arbiter Indexes")
FACTS = ("Subplan Name", "Workers Planned", "Conflict Resolution")


def read(text: str) -> tuple[PlanStep, ...]:
    """The steps of a plan. Raises ValueError."""
    try:
        return tuple(_step(document["Plan"]) for document in json.loads(text) if "Plan" in document)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"the plan has another form: {problem}") from None


def _step(node: dict[str, Any]) -> PlanStep:
    return PlanStep(
        title=_title(node),
        details=tuple(_details(node)),
        inputs=tuple(_step(inner) for inner in node.get("Plans", ())),
        rows=rows_of_plan_step(node, "Plan Rows", "Actual Rows"),
    )


def _title(node: dict[str, Any]) -> str:
    kind = str(node["Node Type"]).lower()
    if node["Node Type"] == "ModifyTable":
        kind = str(node.get("Operation", kind)).lower()
    if node["Node Type"] == "Aggregate":
        partial = f"{node['Partial Mode']} ".lower() if node.get("Partial Mode", "Simple") != "Simple" else ""
        kind = partial + AGGREGATES.get(node.get("Strategy", ""), kind)
    join = node.get("Join Type", "Inner")
    if join != "Inner":
        kind = f"{kind.removesuffix(' join')} {join.lower()} join"
    if node.get("Parallel Aware"):
        kind = f"parallel {kind}"
    on = _on(node)
    return f"{kind} {on}" if on else kind


def _on(node: dict[str, Any]) -> str:
    """What is read or written: an index by its name, a table with the alias that tells two of it apart."""
    if index := node.get("Index Name"):
        return str(index)
    name = node.get("Relation Name") or node.get("CTE Name") or node.get("Function Name") or ""
    alias = node.get("Alias", name)
    return f"{name} {alias}" if alias != name and name else str(name)


def _details(node: dict[str, Any]) -> Iterator[str]:
    if node.get("Scan Direction") == "Backward":
        yield "backward"
    for key in CONDITIONS:
        if key in node:
            yield f"{key.lower()} {without_values(str(node[key]))}"
    for key in LISTS:
        if key in node:
            yield f"{key.lower()} {', '.join(without_values(str(one)) for one in node[key])}"
    for key in FACTS:
        if key in node:
            yield f"{key.lower()} {node[key]}"


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


ROWS = RowWords(
    size="SELECT SUM(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE schemaname = 'public'",
    # As text a byte of a bytea takes two, behind two others.
    length="CASE pg_typeof({column})::text WHEN 'bytea' THEN (OCTET_LENGTH({column}::text) - 2) / 2"
    " ELSE OCTET_LENGTH({column}::text) END",
    changed="SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
    " WHERE schemaname = 'public'",
    only="ONLY ",
)

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


BLOCK_BYTES = 8192
OF_STATEMENT = {
    "blocks found in shared buffers": (1.0, ("Shared Hit Blocks",)),
    "blocks read": (1.0, ("Shared Read Blocks",)),
    "temporary blocks read": (1.0, ("Temp Read Blocks",)),
    "spilled, bytes": (float(BLOCK_BYTES), ("Temp Written Blocks",)),
}
"""What EXPLAIN (ANALYZE, BUFFERS) says of a whole statement: of its outermost step. A block has 8 KiB unless
the server was built otherwise."""


def _of_statement(rows: Sequence[Sequence[str | float | None]]) -> Mapping[str, float]:
    told = json.loads("\n".join(str(row[0]) for row in rows))
    return viewed(OF_STATEMENT, told[0]["Plan"])


METER = StatementMeter(read=_of_statement, explain="EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ")


def sampled(ask: Ask) -> dict[str, float]:
    told = counters_of(VIEW)
    return {name: value for name, value in status(ask).items() if name in told}


WAITS_SQL = (
    "SELECT COALESCE(wait_event_type || ': ' || wait_event, 'on a CPU, or ready'), COUNT(*)"
    " FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"
    " AND pid <> pg_backend_pid() GROUP BY 1"
)


def waits(ask: Ask) -> dict[str, float]:
    return numbers(ask(WAITS_SQL))


LOCKS = LockViews(
    own="SELECT pg_backend_pid()",
    end="SELECT pg_terminate_backend({session})",
    # Of many that wait some are looked at, because each look stops the lock manager.
    blocked="SELECT w.pid, w.query, b.pid,"
    " CASE WHEN b.state = 'active' THEN b.query ELSE b.state || ', last: ' || b.query END,"
    " COALESCE((SELECT l.mode || ' on ' || COALESCE(l.relation::regclass::text, l.locktype) FROM pg_locks l"
    " WHERE l.pid = w.pid AND NOT l.granted LIMIT 1), 'a lock'), 0"
    " FROM (SELECT pid, query FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    " ORDER BY query_start LIMIT 20) w"
    " CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS p(pid) JOIN pg_stat_activity b ON b.pid = p.pid",
)


def view(gained: Mapping[str, float]) -> dict[str, float]:
    return viewed(VIEW, gained)


def exercised(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
    return proved(PROOFS, name, before, after, "pg_stat views")


def unmoved(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    return facts.unmoved(PROOFS, PARTIAL, name, before, after)
