"""MariaDB's plans, as `EXPLAIN FORMAT=JSON` tells them, and MySQL's in their first format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dbdyno.engines.plan import Step, without_values

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


def read(text: str) -> tuple[Step, ...]:
    """The steps of a plan. Raises ValueError."""
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the plan is no object")
    return tuple(_steps(document))


def _steps(value: object, join: str = "nested loop") -> Iterator[Step]:
    """The steps that a part of the document holds."""
    if isinstance(value, list):
        held = [step for one in value for step in _steps(one)]
        if len(held) > 1 and join:
            yield Step(title=join, inputs=tuple(held))
        else:
            yield from held
    elif isinstance(value, dict):
        if "table_name" in value or "message" in value:
            yield _table(value)
            return
        for key, inner in value.items():
            yield from _named(key, inner)


def _named(key: str, value: object) -> Iterator[Step]:
    if not isinstance(value, dict | list) or key in ("cost_info", "used_columns", "rowid_filter"):
        return
    held = tuple(_steps(value, join="" if key in TRANSPARENT else "nested loop"))
    if not held or key in TRANSPARENT or (key == "nested_loop" and len(held) <= 1):
        yield from held
    elif isinstance(value, list):
        yield from held if key == "nested_loop" else (Step(title=_operation(key, {}), inputs=held),)
    else:
        yield Step(title=_operation(key, value), details=tuple(_details(value)), inputs=held)


def _operation(key: str, value: dict[str, Any]) -> str:
    if value.get("join_type") == "BNLH":
        return "hash join"
    if value.get("using_filesort") is False:
        return f"{OPERATIONS.get(key, key)} by an index"
    return OPERATIONS.get(key, key.replace("_", " ").replace("-", " "))


def _table(value: dict[str, Any]) -> Step:
    """The access to one table, with what must be done before it."""
    inputs = tuple(step for key, inner in value.items() for step in _named(key, inner))
    return Step(title=_title(value), details=tuple(_details(value)), inputs=inputs)


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
