"""Vector sets under `cache/vectors`: each in a folder named by its content, made once, whole or not there.

Their exact neighbours are found by blocked matrix products on all CPUs, in bounded memory.

`specs/` remembers which content a generator's parameters, or a file as it stood, led to.

The products, in 32-bit floats, pick candidates; the candidates' distances are then computed anew in 64 bits
from the vectors themselves, so that the order and the distances kept are exact to rounding.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.datasets.vectors.files import VectorFile, blocks, open_vectors
from dbdyno.datasets.vectors.generate import Generator
from dbdyno.datasets.vectors.vector_set import (
    DISTANCES,
    FLOAT,
    Floats,
    Neighbors,
    VectorSet,
    open_vector_set,
    write_vector_set,
)
from dbdyno.errors import DynoError, UserError
from dbdyno.host import cache
from dbdyno.host.cache import Shelf, Tell
from dbdyno.host.room import require_disk

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


SPECS_FORMAT = 1
"""Rises when the same parameters lead to other vectors."""
DIGEST_LETTERS = 24
NEIGHBORS = 100
"""Computed at once, so that a smaller k needs no second computation."""
COMPARED_BYTES = 32 << 20
CLAIM_TOLERANCE = 1e-3
"""By what share a neighbour of a file may be farther than ours of the same rank; those of ann-benchmarks were
computed in 32 bits."""
SPARE_BYTES = 64 << 20


def generated(generator: Generator, tell: Tell) -> VectorSet:
    """The set that a generator stands for."""
    size_bytes = (generator.vectors + generator.queries) * generator.dimensions * FLOAT.itemsize

    def write(folder: Path) -> VectorSet:
        tell(f"generating {generator.vectors} x {generator.dimensions} vectors")
        return write_vector_set(
            folder, generator.origin, generator.dimensions, generator.train(), generator.test()
        )

    return _made_once({"generator": asdict(generator)}, size_bytes, write, tell)


def imported(path: Path, queries_path: Path | None, held_out: int, seed: int, tell: Tell) -> VectorSet:
    """The set in a file. Queries come from the file itself, from a second one, or, where neither has any,
    `held_out` vectors drawn by `seed` are taken out of the set and become its queries.
    """
    source = open_vectors(path)
    asked = open_vectors(queries_path) if queries_path else None
    size_bytes = (source.vectors + held_out) * source.dimensions * FLOAT.itemsize
    drawn = {} if queries_path or source.test is not None else {"held_out": held_out, "seed": seed}
    files = [_identity(each) for each in (path, queries_path) if each is not None]

    def write(folder: Path) -> VectorSet:
        tell(f"reading {source.vectors} x {source.dimensions} vectors from {path}")
        return _write_file(folder, source, asked, held_out, seed)

    made = _made_once({"files": files, **drawn}, size_bytes, write, tell)
    if asked is None:
        _compare_claimed(made, source, tell)
    return made


def with_neighbors(vectors: VectorSet, distance: str, k: int, tell: Tell) -> VectorSet:
    """The set with at least k exact neighbours per query under a distance. Raises UserError where k is too
    large, or where a vector has no direction to compare.
    """
    if k > vectors.vectors:
        raise UserError(
            f"k is {k}, but the set has only {vectors.vectors} vectors ({vectors.origin})",
            f"ask for 1 to {vectors.vectors} neighbours",
        )
    if distance == "cosine":
        vectors.require_directions()
    if _has_neighbors(vectors, distance, k):
        return vectors
    with Shelf("neighbors", vectors.folder).making(distance, tell) as making:
        if not _has_neighbors(vectors, distance, k):
            count = min(max(k, NEIGHBORS), vectors.vectors)
            tell(f"computing {count} exact neighbours of {vectors.queries} queries ({distance})")
            found = exact_neighbors(vectors.train, vectors.test, distance, count)
            vectors.keep_neighbors(distance, found, making)
    return vectors


def _has_neighbors(vectors: VectorSet, distance: str, k: int) -> bool:
    known = vectors.neighbors(distance)
    return known is not None and known.count >= k


def cached() -> list[VectorSet]:
    """The sets in the cache, by name. Damaged ones are left out."""
    found = []
    shelf = cache.shelf("vectors")
    for name in shelf.names():
        try:
            found.append(open_vector_set(shelf.folder / name))
        except DynoError:
            continue
    return found


def find(name: str) -> VectorSet:
    """The cached set whose digest begins so, or that lies in the folder named."""
    if Path(name).is_dir():
        return open_vector_set(Path(name))
    matches = [each for each in cached() if name and each.digest.startswith(name)]
    if len(matches) != 1:
        problem = "more than one vector set begins" if matches else "no vector set in the cache begins"
        raise UserError(f"{problem} with {name!r}", "see: dyno cache data list")
    cache.shelf("vectors").take(matches[0].folder.name)
    return matches[0]


def _made_once(
    spec: dict[str, Any], size_bytes: int, write: Callable[[Path], VectorSet], tell: Tell
) -> VectorSet:
    """The set that a spec led to before, or `write`s it now; two Dynos at once make it once."""
    shelf = cache.shelf("vectors")
    key = hashlib.sha256(json.dumps([SPECS_FORMAT, spec], sort_keys=True).encode()).hexdigest()
    noted = shelf.folder / "specs" / key[:DIGEST_LETTERS]
    while not (noted.exists() and (folder := shelf.take(noted.read_text(), tell))):
        with shelf.making(noted.name, tell) as making:
            if noted.exists() and shelf.holds(noted.read_text()):
                continue
            require_disk(making, size_bytes + SPARE_BYTES, "the set of vectors")
            made = write(making / "set")
            name = made.digest[:DIGEST_LETTERS]
            shelf.keep(made.folder, name, _shape(made), made.origin)
            noted.parent.mkdir(exist_ok=True)
            noted.write_text(name)
    return open_vector_set(folder)


def _shape(made: VectorSet) -> str:
    return f"{made.vectors:,} x {made.dimensions:,} vectors, {made.queries:,} queries"


def require_held_out(source: VectorFile, held_out: int) -> None:
    """Raises UserError where a file has no vector left once so many are taken out as queries."""
    if held_out >= source.vectors:
        raise UserError(
            f"{source.path} has {source.vectors} vectors and no queries: {held_out} cannot become queries",
            f"take 1 to {source.vectors - 1} of them as queries, or name a file that has its own",
        )


def _write_file(
    folder: Path, source: VectorFile, asked: VectorFile | None, held_out: int, seed: int
) -> VectorSet:
    origin, dimensions = str(source.path), source.dimensions
    test = source.test if asked is None else asked.train
    if test is not None:
        return write_vector_set(folder, origin, dimensions, blocks(source.train), blocks(test))
    require_held_out(source, held_out)
    is_query = np.zeros(source.vectors, bool)
    is_query[np.random.default_rng(seed).choice(source.vectors, held_out, replace=False)] = True
    train = blocks(source.train, lambda start, stop: ~is_query[start:stop])
    test_blocks = blocks(source.train, lambda start, stop: is_query[start:stop])
    sources = np.flatnonzero(~is_query), np.flatnonzero(is_query)
    return write_vector_set(folder, f"{origin}, {held_out} held out", dimensions, train, test_blocks, sources)


def _compare_claimed(made: VectorSet, source: VectorFile, tell: Tell) -> None:
    """Computes the neighbours that a file brings anew, and tells where they are not as it says. Ours count:
    recall is measured against them."""
    truth, distance = source.truth(), source.distance
    if truth is None or distance is None or made.neighbors(distance) is not None:
        return
    if truth.rows.shape[0] != made.queries or not 1 <= truth.count <= made.vectors:
        return
    if distance == "cosine" and (zero := made.without_direction()) is not None:
        tell(f"{zero} is all zeros and has no cosine distance: the file's neighbours are not used")
        return
    exact = with_neighbors(made, distance, truth.count, tell).neighbors(distance)
    assert exact is not None, "they were computed just now"
    if not _claim_holds(made, distance, truth, exact):
        tell(f"the neighbours in {source.path} are not those of its vectors, so Dyno computes them")


def _claim_holds(made: VectorSet, distance: str, truth: Neighbors, exact: Neighbors) -> bool:
    """Whether each claimed neighbour is as near as ours of the same rank, within a share of that distance."""
    if truth.rows.min() < 0 or truth.rows.max() >= made.vectors:
        return False
    each = max(1, COMPARED_BYTES // (truth.count * made.dimensions * 8))
    for start in range(0, made.queries, each):
        part = slice(start, start + each)
        queries = np.asarray(made.test[part])[:, None, :]
        claimed = np.sort(distances_to(np.asarray(made.train[truth.rows[part]]), queries, distance), axis=1)
        nearest = np.asarray(exact.distances[part, : truth.count], np.float64)
        # What rounding to 32 bits leaves of a distance that is 0, by the size of the others.
        rounding = CLAIM_TOLERANCE**2 * nearest[:, -1:]
        if not (np.abs(claimed - nearest) <= CLAIM_TOLERANCE * nearest + rounding).all():
            return False
    return True


def _identity(path: Path) -> dict[str, Any]:
    """A file as it stands: reading all of it anew before each trial would take too long."""
    status = path.resolve().stat()
    return {"path": str(path.resolve()), "size": status.st_size, "modified_ns": status.st_mtime_ns}


__all__ = ["DISTANCES", "cached", "find", "generated", "imported", "with_neighbors"]
