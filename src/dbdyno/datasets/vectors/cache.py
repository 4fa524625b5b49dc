"""Vector sets under `cache/vectors`: each in a folder named by its content, made once, whole or not there.

`specs/` remembers which content a generator's parameters, or a file as it stood, led to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dbdyno.datasets.vectors.files import VectorFile, blocks, open_vectors
from dbdyno.datasets.vectors.generate import Generator
from dbdyno.datasets.vectors.neighbors import distances_to, exact_neighbors
from dbdyno.datasets.vectors.vector_set import (
    DISTANCES,
    FLOAT,
    Neighbors,
    VectorSet,
    open_vector_set,
    write_vector_set,
)
from dbdyno.errors import DynoError, UserError
from dbdyno.host import cache
from dbdyno.host.cache import Shelf, Tell
from dbdyno.host.room import require_disk

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
