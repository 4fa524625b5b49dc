"""The values of `$1`, `$2`, ... as PostgreSQL writes them beside a statement, put into its text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.traffic.tokens import Dialect, Kind, tokens

LIST = re.compile(r"(?:query )?parameters: (.*)", re.IGNORECASE | re.DOTALL)
VALUE = re.compile(r"\$(\d{1,5}) = (NULL|'(?:[^']|'')*')(?=, \$|\s*\Z)")
CUT = "...'"
"""Ends a value that `log_parameter_max_length` cut."""


def of_detail(detail: str) -> dict[str, str]:
    """`$1` and its like with their literals of SQL, from a line of DETAIL; empty where it tells none."""
    found = LIST.fullmatch(detail.strip())
    return of_list(found[1]) if found else {}


def of_list(text: str) -> dict[str, str]:
    """Of `$1 = 'a', $2 = NULL`."""
    return {f"${number}": literal for number, literal in VALUE.findall(text)}


def put_in(statement: str, values: Mapping[str, str]) -> str:
    """A statement with literals in the place of the parameters whose values are known. One that was cut
    stays unknown."""
    if not values:
        return statement
    known = {name: literal for name, literal in values.items() if not literal.endswith(CUT)}
    return "".join(
        known.get(token.text, token.text) if token.kind is Kind.PARAMETER else token.text
        for token in tokens(statement, Dialect.POSTGRESQL)
    )
