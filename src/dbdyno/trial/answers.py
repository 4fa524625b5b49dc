"""Fixed queries whose answers are known by arithmetic: sums, joins, groups and an order of made-up rows.

Some of them ask for what a compiler gives up under -ffast-math: numbers below the least normal one, the end
of the range, and sums that keep what rounding cuts off.

A build that is told to be careless with floating point takes tiny numbers for zero and infinite ones for
finite, and what it then puts into the graph of an index is found no more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

from dbdyno.engines.engine import Ask, Engine, VectorWords
from dbdyno.errors import DriverFailed
from dbdyno.records.record import Check

TABLE, VECTORS, DIMENSIONS, QUERIES, NEAREST = "dyno_known_vectors", 600, 16, 40, 10
SEED = 1
FOUND_LEAST = 0.8
"""Of the nearest neighbours: right builds find nearly all of so few vectors."""
DISTANCE_TOLERANCE = 1e-5
"""Elements have single precision, and an engine may add up in that."""
LEAST, SMALL = 2.0**-140, 2.0**-70
"""Below the least normal number of single precision, and with such a square; both are exact."""
TOO_LARGE = (1e39, 0.0)
"""No element of single precision is so large."""

Vector = Sequence[float]

DISTANCES: dict[str, tuple[str, Vector, Vector, float]] = {
    "euclidean": ("euclidean", (3.0, 4.0), (0.0, 0.0), 5.0),
    "euclidean_tiny": ("euclidean", (LEAST, 0.0), (0.0, 0.0), LEAST),
    "euclidean_long": (
        "euclidean",
        [float(number % 7) for number in range(768)],
        [float(number % 5) for number in range(768)],
        math.sqrt(sum((number % 7 - number % 5) ** 2 for number in range(768))),
    ),
    "cosine": ("cosine", (1.0, 2.0, 3.0), (-1.0, -2.0, -3.0), 2.0),
    "cosine_tiny": ("cosine", (SMALL, 0.0), (SMALL, SMALL), 1.0 - math.sqrt(0.5)),
}
"""By name: the distance, of which two vectors, and what it is."""


def known_vectors(ask: Ask, words: VectorWords) -> tuple[Check, ...]:
    """Checks of distances, of a vector that must be refused, and of an index that is made now."""
    distances = (
        _distance(ask, words, name, metric, one, other, known)
        for name, (metric, one, other, known) in DISTANCES.items()
    )
    return (*distances, _refusal(ask, words), _neighbours(ask, words))


def _distance(
    ask: Ask, words: VectorWords, name: str, metric: str, one: Vector, other: Vector, known: float
) -> Check:
    expression = words.euclidean if metric == "euclidean" else words.cosine
    sql = expression.format(one=_value(words, one), other=_value(words, other))
    said = ask(f"SELECT {sql}")[0][0]
    # Relative, because next to nothing is not zero.
    holds = said is not None and math.isclose(float(said), known, rel_tol=DISTANCE_TOLERANCE)
    detail = "all values are right" if holds else f"{said} in place of {known:.9g}"
    return Check(name=f"distance_{name}", holds=holds, detail=detail)


def _refusal(ask: Ask, words: VectorWords) -> Check:
    """That no vector is made of what single precision cannot hold."""
    try:
        said = ask(f"SELECT {_value(words, TOO_LARGE)} IS NULL")[0][0]
    except DriverFailed as refusal:
        if refusal.kind != "server":
            raise
        return Check(name="vector_refused", holds=True, detail=refusal.message)
    holds = said is not None and bool(float(said))
    detail = "no vector is made of 1e39" if holds else "a vector is made of 1e39, which it cannot hold"
    return Check(name="vector_refused", holds=holds, detail=detail)


def _neighbours(ask: Ask, words: VectorWords) -> Check:
    """That searches by an index that the build makes find what lies nearest."""
    random = Random(SEED)
    made = [[round(random.gauss(), 3) for _ in range(DIMENSIONS)] for _ in range(VECTORS + QUERIES)]
    rows, queries = made[:VECTORS], made[VECTORS:]
    for statement in words.table:
        ask(statement.format(table=TABLE, dimensions=DIMENSIONS))
    listed = ", ".join(f"({number}, {_value(words, row)})" for number, row in enumerate(rows))
    ask(f"INSERT INTO {TABLE} VALUES {listed}")
    found = sum(
        len(_found(ask, words, query) & near)
        for query, near in zip(queries, _nearest(rows, queries), strict=True)
    )
    share = found / (QUERIES * NEAREST)
    detail = f"{share:.3f} of the nearest neighbours by an index of its own"
    return Check(name="index_of_its_own", holds=share >= FOUND_LEAST, detail=detail)


def _found(ask: Ask, words: VectorWords, query: Vector) -> set[int]:
    distance = words.euclidean.format(one="v", other=_value(words, query))
    rows = ask(f"SELECT id FROM {TABLE} ORDER BY {distance} LIMIT {NEAREST}")
    return {int(row[0]) for row in rows if row[0] is not None}


def _nearest(rows: Sequence[Vector], queries: Sequence[Vector]) -> list[set[int]]:
    """The exact neighbours of each query."""
    return [
        set(sorted(range(len(rows)), key=lambda row: math.dist(rows[row], query))[:NEAREST])
        for query in queries
    ]


def _value(words: VectorWords, vector: Vector) -> str:
    return words.value.format(text="[" + ",".join(map(repr, vector)) + "]")


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
