"""A vector set on disk: plain binary files that the driver maps into memory.

data.json                 counts, dimension, content digest, where the vectors come from
train.f32                 the vectors to be searched, row by row, 32-bit floats, little-endian
test.f32                  the queries, likewise
DISTANCE.neighbors.i32    per query the rows of its nearest vectors, nearest first
DISTANCE.distances.f32    and their distances
DISTANCE.neighbors.format the format of these two, without which they are computed again
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from dbdyno.datasets import SET_FILE
from dbdyno.errors import DynoError, UserError, remedy

Floats = NDArray[np.float32]
Rows = NDArray[np.int32]

FORMAT = 1
NEIGHBORS_FORMAT = "2"
"""Rises when neighbours that were kept are no longer to be believed. Format 1 may hold those that a file
brought."""
FLOAT = np.dtype("<f4")
ROW = np.dtype("<i4")
DISTANCES = ("euclidean", "cosine")
VECTORS_MAX = 1_000_000_000
DIMENSIONS_MAX = 16_383
"""MariaDB's limit; pgvector indexes at most 2,000 and says so itself."""


@dataclass(frozen=True)
class Neighbors:
    """For each query (row) its nearest vectors, nearest first: their rows, and their distances."""

    rows: Rows
    distances: Floats

    @property
    def count(self) -> int:
        """How many neighbours each query has."""
        return int(self.rows.shape[1])


@dataclass(frozen=True)
class VectorSet:
    """Vectors to be searched and queries. `zero_vector` and `zero_query` are the first rows, as the origin
    counts them, that hold nothing but zeros and so have no direction (None: there is none); `digest` is that
    of the content alone."""

    folder: Path
    vectors: int
    dimensions: int
    queries: int
    digest: str
    origin: str
    zero_vector: int | None = None
    zero_query: int | None = None

    @property
    def train(self) -> Floats:
        """The vectors, one per row, mapped into memory."""
        return self._mapped("train.f32", self.vectors)

    @property
    def test(self) -> Floats:
        """The queries, one per row, mapped into memory."""
        return self._mapped("test.f32", self.queries)

    @property
    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("*.[fi]32"))

    def neighbors(self, distance: str) -> Neighbors | None:
        """The exact neighbours under a distance; None where they have not been computed."""
        rows, distances = self._neighbor_files(distance)
        told = self._neighbors_format(distance)
        if not told.exists() or told.read_text() != NEIGHBORS_FORMAT:
            return None
        shape = (self.queries, rows.stat().st_size // ROW.itemsize // self.queries)
        return Neighbors(
            np.memmap(rows, ROW, "r", shape=shape), np.memmap(distances, FLOAT, "r", shape=shape)
        )

    def keep_neighbors(self, distance: str, neighbors: Neighbors, making: Path) -> None:
        """Writes the exact neighbours in the folder `making`, then puts them beside the vectors; their format
        last, as it stands for both."""
        for path, values in zip(
            reversed(self._neighbor_files(distance)), (neighbors.distances, neighbors.rows), strict=True
        ):
            draft = making / path.name
            values.astype(FLOAT if values is neighbors.distances else ROW).tofile(draft)
            draft.rename(path)
        draft = making / "format"
        draft.write_text(NEIGHBORS_FORMAT)
        draft.rename(self._neighbors_format(distance))

    def require_directions(self) -> None:
        """Raises UserError where a vector has no direction, so that the cosine distance is not defined."""
        if (zero := self.without_direction()) is not None:
            raise UserError(
                f"{zero} is all zeros, so it has no cosine distance",
                "remove the row, or use the euclidean distance",
            )

    def without_direction(self) -> str | None:
        """The first vector or query that holds nothing but zeros, in words."""
        for what, row in (("vector", self.zero_vector), ("query", self.zero_query)):
            if row is not None:
                return f"{what} {row} of {self.origin}"
        return None

    def _neighbor_files(self, distance: str) -> tuple[Path, Path]:
        return self.folder / f"{distance}.neighbors.i32", self.folder / f"{distance}.distances.f32"

    def _neighbors_format(self, distance: str) -> Path:
        return self.folder / f"{distance}.neighbors.format"

    def _mapped(self, name: str, rows: int) -> Floats:
        return np.memmap(self.folder / name, FLOAT, "r", shape=(rows, self.dimensions))


def open_vector_set(folder: Path) -> VectorSet:
    """The set in a folder. Raises UserError when there is none, DynoError when it is not whole."""
    try:
        about = json.loads((folder / SET_FILE).read_text())
    except OSError as error:
        told = f"{folder} holds no vector set that can be read: {error.strerror}"
        raise UserError(
            told, remedy(error, "make one: dyno cache data make, dyno cache data import")
        ) from None
    try:
        if about.pop("format") != FORMAT:
            raise UserError(f"{folder} was made by another version of Dyno", "make the set again")
        found = VectorSet(folder=folder, **about)
        sizes = {"train.f32": found.vectors, "test.f32": found.queries}
        whole = all(
            (folder / name).stat().st_size == rows * found.dimensions * FLOAT.itemsize
            for name, rows in sizes.items()
        )
    except (KeyError, TypeError, OSError):
        whole = False
    if not whole:
        raise DynoError(f"the vector set in {folder} is damaged", "remove the folder and make the set again")
    return found


def write_vector_set(
    folder: Path,
    origin: str,
    dimensions: int,
    train: Iterable[Floats],
    test: Iterable[Floats],
    sources: tuple[NDArray[np.int64] | None, NDArray[np.int64] | None] = (None, None),
) -> VectorSet:
    """Writes blocks of vectors and of queries into a new folder. Raises UserError for what is no vector.

    `sources` are the rows of the origin that vectors and queries were taken from, where they are not all of
    it: a message names the row that its reader can find.
    """
    folder.mkdir(parents=True)
    try:
        vectors = _Part("vector", origin, dimensions, sources[0])
        queries = _Part("query", origin, dimensions, sources[1])
        for name, part, blocks in (("train.f32", vectors, train), ("test.f32", queries, test)):
            with (folder / name).open("wb") as file:
                part.write(file, blocks)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shape = f"dyno vectors {FORMAT} {vectors.rows} {dimensions} {queries.rows} "
    digest = hashlib.sha256(shape.encode() + vectors.hash.digest() + queries.hash.digest()).hexdigest()
    made = VectorSet(
        folder=folder,
        vectors=vectors.rows,
        dimensions=dimensions,
        queries=queries.rows,
        digest=digest,
        origin=origin,
        zero_vector=vectors.zero,
        zero_query=queries.zero,
    )
    about = {"format": FORMAT} | {name: value for name, value in asdict(made).items() if name != "folder"}
    (folder / SET_FILE).write_text(json.dumps(about, indent=2) + "\n")
    return made


@dataclass
class _Part:
    """One of the two files in the making: counts, digests and refuses."""

    what: str
    origin: str
    dimensions: int
    sources: NDArray[np.int64] | None = None
    rows: int = 0
    zero: int | None = None
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def write(self, file: BinaryIO, blocks: Iterable[Floats]) -> None:
        for block in blocks:
            block = np.ascontiguousarray(block, FLOAT)
            self._require_vectors(block)
            data = block.tobytes()
            self.hash.update(data)
            file.write(data)
            self.rows += len(block)
        if self.rows == 0:
            raise UserError(f"{self.origin} holds no {self.what}", "a set needs vectors and queries")

    def _require_vectors(self, block: Floats) -> None:
        if block.shape[1] != self.dimensions:
            raise UserError(
                f"{self.origin}: a {self.what} has {block.shape[1]} dimensions, not {self.dimensions}",
                "vectors and queries need the same number of dimensions",
            )
        finite = np.isfinite(block)
        if not finite.all():
            row, column = (int(index[0]) for index in np.nonzero(~finite))
            value = block[row, column]
            raise UserError(
                f"{self.origin}: {self.what} {self._source(row)} holds {value} in dimension {column}",
                "no distance is defined for it: remove the row"
                if np.isnan(value)
                else "the values must fit 32-bit floats: scale them",
            )
        if self.zero is None and len(zeros := np.flatnonzero(~block.any(axis=1))):
            self.zero = self._source(int(zeros[0]))

    def _source(self, row: int) -> int:
        """The row of the origin that a row of the block at hand is."""
        return self.rows + row if self.sources is None else int(self.sources[self.rows + row])
