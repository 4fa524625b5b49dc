"""What a vector set is like: how long its vectors are, and how hard their neighbours are to tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dbdyno.datasets.vectors.vector_set import Neighbors, VectorSet

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
