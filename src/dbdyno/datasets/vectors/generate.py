"""Vectors made from a seed: a mixture of Gaussians in a subspace, plus noise in every dimension.

    x = (centre + deviation) A + noise

`centre` is one of `clusters` points drawn from N(0, I), `deviation` is drawn from N(0, 1/4 I), both of
`intrinsic_dimension`; A, with elements of N(0, 1/intrinsic_dimension), puts them into all `dimensions`; the
noise has the given standard deviation in every dimension. With one cluster, the centre is the origin and the
deviation N(0, I): the subspace alone. With as many intrinsic dimensions as `dimensions`, A is the identity:
a mixture in the whole space.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dbdyno.datasets.vectors.vector_set import Floats, Neighbors, VectorSet
from dbdyno.errors import UserError

SAMPLED_ROWS = 10_000


@dataclass(frozen=True)
class Lengths:
    """Euclidean lengths of a sample of the vectors."""

    rows: int
    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class Nearness:
    """How the nearest vectors lie around the queries, under one distance.

    Means are over the queries: of the distance to the nearest vector, and to the `k`-th.
    `intrinsic_dimension` is the maximum-likelihood estimate from the kept neighbours (Levina, Bickel, 2004,
    averaged as MacKay and Ghahramani, 2005, advise); None where distances of 0 leave nothing to go by.
    """

    kept: int
    k: int
    nearest_mean: float
    kth_mean: float
    intrinsic_dimension: float | None


def lengths(vectors: VectorSet) -> Lengths:
    """The lengths of up to 10,000 vectors, evenly spread over the set."""
    rows = np.asarray(vectors.train[:: max(1, vectors.vectors // SAMPLED_ROWS)], np.float64)
    found = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return Lengths(len(found), float(found.min()), float(found.mean()), float(found.max()))


def nearness(neighbors: Neighbors, k: int = 10) -> Nearness:
    """The portrait of a set's exact neighbours."""
    distances = np.asarray(neighbors.distances, np.float64)
    k = min(k, neighbors.count)
    return Nearness(
        kept=neighbors.count,
        k=k,
        nearest_mean=float(distances[:, 0].mean()),
        kth_mean=float(distances[:, k - 1].mean()),
        intrinsic_dimension=_intrinsic_dimension(distances),
    )


def _intrinsic_dimension(distances: NDArray[np.float64]) -> float | None:
    usable = distances[(distances[:, 0] > 0) & (distances[:, -1] > distances[:, 0])]
    if len(usable) == 0 or usable.shape[1] < 3:
        return None
    inverse = np.log(usable[:, -1:] / usable[:, :-1]).sum(axis=1) / (usable.shape[1] - 2)
    return float(1 / inverse.mean())


CHUNK_ROWS = 4096
"""Each chunk has a random stream of its own: the vectors do not depend on the number of CPUs."""
WITHIN_CLUSTER = 0.5
_MODEL, _TRAIN, _TEST = range(3)


@dataclass(frozen=True)
class Generator:
    """What shapes generated vectors. Raises UserError where the parts do not fit together."""

    vectors: int
    queries: int
    dimensions: int
    clusters: int = 1
    intrinsic_dimension: int = 32
    noise: float = 0.1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.intrinsic_dimension > self.dimensions:
            raise UserError(
                f"{self.intrinsic_dimension} intrinsic dimensions do not fit into {self.dimensions}",
                f"give 1 to {self.dimensions} intrinsic dimensions",
            )

    @property
    def origin(self) -> str:
        """The vectors in a few words."""
        mixture = f"{self.clusters} clusters in " if self.clusters > 1 else ""
        return (
            f"generated {self.vectors} x {self.dimensions} ({mixture}{self.intrinsic_dimension} intrinsic"
            f" dimensions, noise {self.noise:g}, seed {self.seed})"
        )

    def train(self) -> Iterator[Floats]:
        """The vectors, in blocks of rows."""
        return self._blocks(_TRAIN, self.vectors)

    def test(self) -> Iterator[Floats]:
        """The queries: drawn like the vectors, and none of them."""
        return self._blocks(_TEST, self.queries)

    def _blocks(self, part: int, rows: int) -> Iterator[Floats]:
        centres, projection = self._model()
        starts = range(0, rows, CHUNK_ROWS)
        workers = os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()
        with ThreadPoolExecutor(workers) as pool:
            # A few chunks at a time: all of them would hold the whole set in memory.
            for first in range(0, len(starts), 4 * (workers or 1)):
                group = starts[first : first + 4 * (workers or 1)]
                yield from pool.map(
                    lambda start: self._chunk(
                        part, start, min(CHUNK_ROWS, rows - start), centres, projection
                    ),
                    group,
                )

    def _random(self, *stream: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=stream)))

    def _model(self) -> tuple[Floats, Floats | None]:
        random, inner = self._random(_MODEL), self.intrinsic_dimension
        centres = random.standard_normal((self.clusters, inner), np.float32)
        if self.clusters == 1:
            centres[:] = 0
        if inner == self.dimensions:
            return centres, None
        return centres, random.standard_normal((inner, self.dimensions), np.float32) / np.float32(
            np.sqrt(inner)
        )

    def _chunk(self, part: int, start: int, rows: int, centres: Floats, projection: Floats | None) -> Floats:
        random = self._random(part, start // CHUNK_ROWS)
        points = random.standard_normal((rows, self.intrinsic_dimension), np.float32)
        if self.clusters > 1:
            points *= np.float32(WITHIN_CLUSTER)
            points += centres[random.integers(self.clusters, size=rows)]
        vectors: Floats = points if projection is None else points @ projection
        if self.noise > 0:
            vectors += np.float32(self.noise) * random.standard_normal(vectors.shape, np.float32)
        return vectors
