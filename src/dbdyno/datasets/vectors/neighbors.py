"""Exact nearest neighbours: blocked matrix products on all CPUs, in bounded memory.

The products, in 32-bit floats, pick candidates; the candidates' distances are then computed anew in 64 bits
from the vectors themselves, so that the order and the distances kept are exact to rounding.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dbdyno.datasets.vectors.vector_set import Floats, Neighbors

SCORES_BYTES = 64 << 20
"""One block of products. With the vectors it is made from, and the indices of the selection, the peak is
about five times this."""
QUERY_ROWS = 1024
SPARE = 28
"""Candidates beyond those asked for: what 32-bit products misplace lies within them."""
GATHERED_BYTES = 32 << 20

Candidates = tuple[Floats, NDArray[np.int64]]


def exact_neighbors(train: Floats, test: Floats, distance: str, count: int) -> Neighbors:
    """The `count` nearest rows of `train` for each row of `test`, under `euclidean` or `cosine` (1 - cos).

    Equal distances are in the order of rows. Vectors without a direction must have been refused before.
    """
    wanted = min(count + SPARE, len(train))
    parts = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(test), QUERY_ROWS):
            queries = np.asarray(test[start : start + QUERY_ROWS])
            candidates = _candidates(pool, train, queries, distance, wanted)
            parts.append(_ranked(pool, train, queries, candidates, distance, count))
    rows, distances = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Neighbors(rows.astype(np.int32), distances.astype(np.float32))


def _candidates(
    pool: ThreadPoolExecutor,
    train: Floats,
    queries: Floats,
    distance: str,
    wanted: int,
) -> NDArray[np.int64]:
    """The rows that come first by 32-bit products, per query, in no order."""
    # Moving all points alike changes no distance and keeps the products small, so that fewer bits are lost.
    offset = train[:: max(1, len(train) // 4096)].mean(axis=0) if distance == "euclidean" else np.float32(0)
    turned = np.ascontiguousarray((_directions(queries) if distance == "cosine" else queries - offset).T)
    best: Candidates | None = None
    rows = max(wanted, SCORES_BYTES // 4 // len(queries))
    for start in range(0, len(train), rows):
        block = np.asarray(train[start : start + rows])
        if distance == "cosine":
            scores = _directions(block) @ -turned
        else:
            block = block - offset
            scores = block @ -turned
            scores += np.einsum("ij,ij->i", block, block)[:, None] / 2
        best = _first(pool, scores.T, start, best, wanted)
    assert best is not None
    return best[1]


def _first(
    pool: ThreadPoolExecutor, scores: Floats, start: int, best: Candidates | None, wanted: int
) -> Candidates:
    """The `wanted` smallest per query among a block's scores (one row per query) and the best so far."""

    def select(queries: slice) -> Candidates:
        values = np.ascontiguousarray(scores[queries])
        ours = _smallest(values, wanted)
        values, rows = np.take_along_axis(values, ours, 1), ours + start
        if best is not None:
            values = np.concatenate((best[0][queries], values), axis=1)
            rows = np.concatenate((best[1][queries], rows), axis=1)
            chosen = _smallest(values, wanted)
            values, rows = np.take_along_axis(values, chosen, 1), np.take_along_axis(rows, chosen, 1)
        return values, rows

    parts = list(pool.map(select, _slices(len(scores), 32)))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _smallest(values: Floats, wanted: int) -> NDArray[np.int64]:
    if values.shape[1] <= wanted:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(values, wanted - 1, axis=1)[:, :wanted]


def _ranked(
    pool: ThreadPoolExecutor,
    train: Floats,
    queries: Floats,
    candidates: NDArray[np.int64],
    distance: str,
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest `count` of the candidates by 64-bit distances, nearest first; equal ones by row."""

    def rank(part: slice) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        rows = np.sort(candidates[part], axis=1)
        found = distances_to(np.asarray(train[rows]), queries[part, None, :], distance)
        # The rows are in order and the sort is stable, so equal distances stay in the order of rows.
        order = np.argsort(found, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(rows, order, 1), np.take_along_axis(found, order, 1)

    each = max(1, GATHERED_BYTES // (candidates.shape[1] * train.shape[1] * 8))
    parts = list(pool.map(rank, _slices(len(queries), each)))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def distances_to(vectors: Floats, queries: Floats, distance: str) -> NDArray[np.float64]:
    """Distances along the last axis, in 64 bits; the other axes are broadcast."""
    left, right = vectors.astype(np.float64), queries.astype(np.float64)
    if distance == "euclidean":
        between = left - right
        roots: NDArray[np.float64] = np.sqrt(_dot(between, between))
        return roots
    return 1 - _dot(left, right) / np.sqrt(_dot(left, left) * _dot(right, right))


def _dot(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = np.einsum("...i,...i->...", left, right)
    return products


def _directions(vectors: Floats) -> Floats:
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    directions: Floats = (vectors / norms[:, None]).astype(np.float32)
    return directions


def _slices(length: int, each: int) -> list[slice]:
    return [slice(start, min(start + each, length)) for start in range(0, length, each)]
