"""SQLite's plans, as the rows of `EXPLAIN QUERY PLAN` tell them."""

from __future__ import annotations

import json
import re

from dbdyno.engines.plan import Step

_ESTIMATE = re.compile(r" \(~\d+ rows?\)")
_TERMS = re.compile(r"^(?P<title>.*?) \((?P<terms>[^()]*)\)$")


def read(text: str) -> tuple[Step, ...]:
    """The steps of a plan: `[number, number of the row above, what is done]` each. Raises ValueError."""
    rows = json.loads(text)
    if not all(isinstance(row, list) and len(row) == 3 for row in rows):
        raise ValueError("the plan has another form")
    known = {number for number, _, _ in rows}
    return tuple(_step(row, rows) for row in rows if row[1] not in known)


def _step(row: list[int | str], rows: list[list[int | str]]) -> Step:
    number, _, what = row
    text = _ESTIMATE.sub("", str(what))
    terms = _TERMS.match(text)
    return Step(
        title=_lower(terms["title"] if terms else text),
        details=(terms["terms"],) if terms else (),
        inputs=tuple(_step(inner, rows) for inner in rows if inner[1] == number and inner is not row),
    )


def _lower(title: str) -> str:
    """SQLite's own words in small letters, and names as they are."""
    return re.sub(r"\b[A-Z]{2,}(?:-[A-Z]+)?\b", lambda word: word[0].lower(), title)
