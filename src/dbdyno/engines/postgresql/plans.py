"""PostgreSQL's plans, as `EXPLAIN (FORMAT JSON, COSTS OFF)` tells them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dbdyno.engines.plan import Step, without_values

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


def read(text: str) -> tuple[Step, ...]:
    """The steps of a plan. Raises ValueError."""
    try:
        return tuple(_step(document["Plan"]) for document in json.loads(text) if "Plan" in document)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"the plan has another form: {problem}") from None


def _step(node: dict[str, Any]) -> Step:
    return Step(
        title=_title(node),
        details=tuple(_details(node)),
        inputs=tuple(_step(inner) for inner in node.get("Plans", ())),
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
