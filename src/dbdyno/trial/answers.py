"""Fixed queries whose answers are known by arithmetic: sums, joins, groups and an order of made-up rows.

Some of them ask for what a compiler gives up under -ffast-math: numbers below the least normal one, the end
of the range, and sums that keep what rounding cuts off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dbdyno.engines.engine import Ask, Engine
from dbdyno.errors import DriverFailed
from dbdyno.records.record import Check

ROWS = 500
"""Engines end a recursion at 1,000 rows or more unless they are told otherwise."""
NUMBERS = range(1, ROWS + 1)
MADE_UP = (
    "WITH RECURSIVE n(i, one) AS (SELECT 1, CAST(1 AS {double}){dual} "
    f"UNION ALL SELECT i + 1, one FROM n WHERE i < {ROWS}) "
)
"""Each row has its number and a 1 in double precision, because a literal 1e0 is a decimal to some engines."""
TOLERANCE = 1e-9
"""Sums of fractions differ by the order in which they were added."""

KNOWN: Mapping[str, tuple[str, Sequence[float]]] = {
    "sums": (
        "SELECT COUNT(*), SUM(i), MIN(i), MAX(i), SUM(i * i) FROM n",
        (ROWS, sum(NUMBERS), 1, ROWS, sum(number**2 for number in NUMBERS)),
    ),
    "fractions": ("SELECT SUM(one / i) FROM n", (math.fsum(1 / number for number in NUMBERS),)),
    "join": (
        "SELECT COUNT(*), SUM(a.i), SUM(b.i) FROM n a JOIN n b ON b.i = a.i + a.i",
        (ROWS // 2, sum(range(1, ROWS // 2 + 1)), sum(range(2, ROWS + 1, 2))),
    ),
    "groups": (
        "SELECT COUNT(*), SUM(c) FROM (SELECT COUNT(*) AS c FROM n GROUP BY CASE WHEN i < 100 THEN 0 "
        "WHEN i < 300 THEN 1 ELSE 2 END HAVING COUNT(*) > 100) g",
        (2, ROWS - 99),
    ),
    "order": (
        "SELECT i FROM n WHERE NOT EXISTS (SELECT 1 FROM n m WHERE m.i = n.i + 450) ORDER BY i DESC",
        range(ROWS, 50, -1),
    ),
    "tiny": ("SELECT SUM(one / 1e200 / 1e110 * 1e110 * 1e200) FROM n", (ROWS,)),
}
"""By name: a query of the rows `n`, and all values of its answer, row by row."""
COMPENSATED = (
    f"SELECT SUM(CASE i WHEN 1 THEN one * 1e17 WHEN {ROWS} THEN one * -1e17 ELSE one END) FROM n",
    (ROWS - 2,),
)
"""1e17 is rounded to multiples of 16, so a 1 that is added lasts only where SUM keeps what it cuts off."""
OVERFLOW = "SELECT SUM(one) * 1e300 * 1e300 FROM n"
INFINITE = frozenset(("inf", "infinity"))


def known_answers(ask: Ask, engine: Engine, version: str) -> tuple[Check, ...]:
    """A check for each query that an engine of this version is asked."""
    made_up = MADE_UP.format(dual=f" FROM {engine.dual}" if engine.dual else "", double=engine.double)
    queries = {**KNOWN, "compensated": COMPENSATED} if engine.compensates(version) else KNOWN
    return (
        *(_judged(name, ask(made_up + sql), known) for name, (sql, known) in queries.items()),
        _overflow(ask, made_up + OVERFLOW, engine.holds_infinity),
    )


def _overflow(ask: Ask, sql: str, holds_infinity: bool) -> Check:
    """That what is too large for double precision comes out as infinity, or as an error."""
    try:
        rows = ask(sql)
    except DriverFailed as refusal:
        if refusal.kind != "server":
            raise
        return Check(name="answer_overflow", holds=not holds_infinity, detail=refusal.message)
    values = [str(value).lower() for row in rows for value in row]
    expected = "infinity" if holds_infinity else "an error"
    return Check(
        name="answer_overflow",
        holds=holds_infinity and len(values) == 1 and values[0] in INFINITE,
        detail=f"{', '.join(values) or 'no row'}, {expected} expected",
    )


def _judged(name: str, rows: Sequence[Sequence[str | float | None]], known: Sequence[float]) -> Check:
    values = [value for row in rows for value in row]
    fault = _fault(values, known)
    return Check(name=f"answer_{name}", holds=not fault, detail=fault or "all values are right")


def _fault(values: Sequence[str | float | None], known: Sequence[float]) -> str:
    """What is wrong with an answer; empty where it is right."""
    if len(values) != len(known):
        return f"{len(values)} values, {len(known)} expected"
    wrong = next((pair for pair in zip(values, known, strict=True) if not _same(*pair)), None)
    return f"{wrong[0]} in place of {wrong[1]:.15g}" if wrong else ""


def _same(value: str | float | None, known: float) -> bool:
    try:
        return value is not None and math.isclose(float(value), known, rel_tol=TOLERANCE)
    except ValueError:
        return False
