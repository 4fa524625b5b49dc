"""Statements of which auto_explain wrote the plan."""

from __future__ import annotations

import pytest

from dbdyno.traffic.postgresql.plans import planned

STATEMENT = 'SELECT "a"\n  FROM t\n WHERE b = $1'
WRITTEN = r"\"a\"\n  FROM t\n WHERE b = $1"
TEXT = (
    f"Query Text: {STATEMENT}\n%s"
    "Index Scan using t_b on t  (cost=0.29..8.30 rows=1 width=4)\n  Index Cond: (b = 7)"
)
JSON = '{\n  "Query Text": "SELECT ' + WRITTEN + '",\n%s  "Plan": {\n    "Node Type": "Seq Scan"\n  }\n}'
YAML = 'Query Text: "SELECT ' + WRITTEN + '"\n%sPlan: \n  Node Type: "Seq Scan"'
XML = (
    '<explain xmlns="http://www.postgresql.org/2009/explain">\n'
    "  <Query-Text>SELECT &quot;a&quot;\n  FROM t\n WHERE b = $1</Query-Text>\n"
    "%s  <Plan>\n  </Plan>\n</explain>"
)


@pytest.mark.parametrize(
    ("plan", "parameters"),
    [
        (TEXT, "Query Parameters: $1 = 'it''s'\n"),
        (JSON, "  \"Query Parameters\": \"$1 = 'it''s'\",\n"),
        (YAML, "Query Parameters: \"$1 = 'it''s'\"\n"),
        (XML, "  <Query-Parameters>$1 = &apos;it''s&apos;</Query-Parameters>\n"),
    ],
    ids=["text", "json", "yaml", "xml"],
)
def test_a_plan_tells_its_statement_and_its_parameters(plan: str, parameters: str) -> None:
    without, found = planned(plan % ""), planned(plan % parameters)
    assert without and found
    assert (without.text, without.parameters) == (STATEMENT, "")
    assert (found.text, found.parameters) == (STATEMENT, "$1 = 'it''s'")


def test_what_is_no_plan_is_none() -> None:
    assert planned("Seq Scan on t") is None and planned("") is None
