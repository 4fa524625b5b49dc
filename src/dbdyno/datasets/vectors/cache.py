"""Vector sets under `cache/vectors`: each in a folder named by its content, made once, whole or not there.

`specs/` remembers which content a generator's parameters, or a file as it stood, led to.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from dbdyno.host import paths
from dbdyno.host.room import require_disk

Tell = Callable[[str], None]
"""Where progress goes, a line at a time."""

SPECS_FORMAT = 1
"""Rises when the same parameters lead to other vectors."""
DIGEST_LETTERS = 24
NEIGHBORS = 100
"""Computed at once, so that a smaller k needs no second computation."""
CHECKED_QUERIES = 10
CLAIM_TOLERANCE = 1e-3
"""How far a file's distances may be from ours; those of ann-benchmarks were computed in 32 bits."""
SPARE_BYTES = 64 << 20


def generated(generator: Generator, tell: Tell) -> VectorSet:
    """The set that a generator stands for."""
    size_bytes = (generator.vectors + generator.queries) * generator.dimensions * FLOAT.itemsize

    def write(folder: Path) -> VectorSet:
        tell(f"generating {generator.vectors} x {generator.dimensions} vectors")
        return write_vector_set(
            folder, generator.origin, generator.dimensions, generator.train(), generator.test()
        )

    return _made_once({"generator": asdict(generator)}, size_bytes, write)


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

    made = _made_once({"files": files, **drawn}, size_bytes, write)
    if asked is None:
        _take_claimed(made, source, tell)
    return made


def with_neighbors(vectors: VectorSet, distance: str, k: int, tell: Tell) -> VectorSet:
    """The set with at least k exact neighbours per query under a distance. Raises UserError where k is too
    large, or where a vector has no direction to compare.
    """
    if k > vectors.vectors:
        raise UserError(
            f"k is {k}, but the set has only {vectors.vectors} vectors ({vectors.origin})",
            f"give k = 1 to {vectors.vectors}",
        )
    if distance == "cosine":
        vectors.require_directions()
    with _only_one(vectors.folder / "lock"):
        known = vectors.neighbors(distance)
        if known is None or known.count < k:
            count = min(max(k, NEIGHBORS), vectors.vectors)
            tell(f"computing {count} exact neighbours of {vectors.queries} queries ({distance})")
            vectors.keep_neighbors(distance, exact_neighbors(vectors.train, vectors.test, distance, count))
    return vectors


def cached() -> list[VectorSet]:
    """The sets in the cache, by name. Damaged ones are left out."""
    found = []
    for folder in sorted(_home().glob("[0-9a-f]" * DIGEST_LETTERS)):
        try:
            found.append(open_vector_set(folder))
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
        raise UserError(f"{problem} with {name!r}", "see: dyno data list")
    return matches[0]


def _made_once(spec: dict[str, Any], size_bytes: int, write: Callable[[Path], VectorSet]) -> VectorSet:
    """The set that a spec led to before, or `write`s it now; two Dynos at once make it once."""
    home = _home()
    name = hashlib.sha256(json.dumps([SPECS_FORMAT, spec], sort_keys=True).encode()).hexdigest()
    noted = home / "specs" / name[:DIGEST_LETTERS]
    noted.parent.mkdir(exist_ok=True)
    with _only_one(home / "lock"):
        if noted.exists() and (home / noted.read_text() / "data.json").exists():
            return open_vector_set(home / noted.read_text())
        require_disk(home, size_bytes + SPARE_BYTES, "the set of vectors")
        with tempfile.TemporaryDirectory(prefix="making-", dir=home) as making:
            made = write(Path(making) / "set")
            folder = home / made.digest[:DIGEST_LETTERS]
            if not (folder / "data.json").exists():
                shutil.rmtree(folder, ignore_errors=True)
                made.folder.rename(folder)
        noted.write_text(folder.name)
    return open_vector_set(folder)


def require_held_out(source: VectorFile, held_out: int) -> None:
    """Raises UserError where a file has no vector left once so many are taken out as queries."""
    if held_out >= source.vectors:
        raise UserError(
            f"{source.path} has {source.vectors} vectors and no queries: {held_out} cannot be taken out",
            f"give queries = 1 to {source.vectors - 1}, or a file of queries",
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


def _take_claimed(made: VectorSet, source: VectorFile, tell: Tell) -> None:
    """Takes the neighbours that a file brings, if a few of them, computed anew, are as it says."""
    truth, distance = source.truth(), source.distance
    if truth is None or distance is None or made.neighbors(distance) is not None:
        return
    if truth.rows.shape[0] != made.queries or not 1 <= truth.count <= made.vectors:
        return
    if not _claim_holds(made, distance, truth):
        tell(f"the neighbours that {source.path} brings are not those of its vectors: they are computed anew")
        return
    made.keep_neighbors(distance, truth)


def _claim_holds(made: VectorSet, distance: str, truth: Neighbors) -> bool:
    if truth.rows.min() < 0 or truth.rows.max() >= made.vectors:
        return False
    if distance == "cosine" and (made.zero_vector is not None or made.zero_query is not None):
        return False
    some = np.linspace(0, made.queries - 1, min(CHECKED_QUERIES, made.queries)).astype(int)
    queries = np.asarray(made.test[some])
    exact = exact_neighbors(made.train, queries, distance, truth.count)
    claimed = distances_to(np.asarray(made.train[truth.rows[some]]), queries[:, None, :], distance)
    close = np.allclose(claimed, exact.distances, rtol=CLAIM_TOLERANCE, atol=CLAIM_TOLERANCE)
    return close and np.allclose(truth.distances[some], claimed, rtol=CLAIM_TOLERANCE, atol=CLAIM_TOLERANCE)


def _identity(path: Path) -> dict[str, Any]:
    """A file as it stands: reading all of it anew before each trial would take too long."""
    status = path.resolve().stat()
    return {"path": str(path.resolve()), "size": status.st_size, "modified_ns": status.st_mtime_ns}


def _home() -> Path:
    home = paths.cache() / "vectors"
    home.mkdir(exist_ok=True)
    return home


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


__all__ = ["DISTANCES", "cached", "find", "generated", "imported", "with_neighbors"]
