"""MySQL's plans, as `EXPLAIN FORMAT=JSON` tells them. The driver asks for the first of its two formats."""

from __future__ import annotations

import json
import re
from typing import Any

from dbdyno.engines.mariadb import plans as first_format
from dbdyno.engines.plan import Step, without_values

_COSTS = re.compile(r"\s*\((?:cost|actual|rows)=?[^()]*\)")
_TERMS = re.compile(r"\s*\((?P<terms>.*)\)$")


def read(text: str) -> tuple[Step, ...]:
    """The steps of a plan. Raises ValueError."""
    document = json.loads(text)
    plan = document.get("query_plan") if isinstance(document, dict) else None
    if plan is None:
        return first_format.read(text)
    return (_step(plan),)


def _step(node: dict[str, Any]) -> Step:
    operation = _COSTS.sub("", str(node.get("operation", "step")))
    terms = _TERMS.search(operation)
    title = without_values(operation[: terms.start()] if terms else operation).rstrip(":")
    condition = node.get("lookup_condition") or node.get("condition") or (terms["terms"] if terms else "")
    return Step(
        title=f"{title[:1].lower()}{title[1:]}",
        details=(without_values(str(condition)),) if condition else (),
        inputs=tuple(_step(inner) for inner in node.get("inputs", ())),
    )
