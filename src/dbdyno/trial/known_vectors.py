"""Vectors whose distances and neighbours are known: what an engine says of them, by an index that it makes.

A build that is told to be careless with floating point takes tiny numbers for zero and infinite ones for
finite, and what it then puts into the graph of an index is found no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from dbdyno.engines.engine import Ask, VectorWords
from dbdyno.errors import DriverFailed
from dbdyno.records.record import Check

TABLE, VECTORS, DIMENSIONS, QUERIES, NEAREST = "dyno_known_vectors", 600, 16, 40, 10
SEED = 1
FOUND_LEAST = 0.8
"""Of the nearest neighbours: right builds find nearly all of so few vectors."""
TOLERANCE = 1e-5
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
    holds = said is not None and math.isclose(float(said), known, rel_tol=TOLERANCE)
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
