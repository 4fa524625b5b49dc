from __future__ import annotations

import numpy as np
import pytest

from dbdyno.datasets.vectors.generate import CHUNK_ROWS, Generator
from dbdyno.errors import UserError


def drawn(generator: Generator) -> np.ndarray:
    return np.concatenate(list(generator.train()))


def test_vectors_repeat_and_depend_on_the_seed() -> None:
    one, again = Generator(500, 10, 48, seed=1), Generator(500, 10, 48, seed=1)
    assert drawn(one).shape == (500, 48)
    assert drawn(one).dtype == np.float32
    assert np.array_equal(drawn(one), drawn(again))
    assert not np.array_equal(drawn(one), drawn(Generator(500, 10, 48, seed=2)))


def test_a_longer_set_begins_like_a_shorter_one() -> None:
    short = drawn(Generator(CHUNK_ROWS, 1, 4, intrinsic_dimension=4))
    assert np.array_equal(drawn(Generator(CHUNK_ROWS + 5, 1, 4, intrinsic_dimension=4))[:CHUNK_ROWS], short)


def test_queries_are_none_of_the_vectors() -> None:
    generator = Generator(300, 50, 8, intrinsic_dimension=4)
    queries = np.concatenate(list(generator.test()))
    assert queries.shape == (50, 8)
    assert not (queries[:, None, :] == drawn(generator)[None, :50, :]).all(axis=2).any()


def test_without_noise_the_vectors_lie_in_a_subspace() -> None:
    flat = drawn(Generator(400, 1, 32, intrinsic_dimension=3, noise=0))
    assert np.linalg.matrix_rank(flat.astype(np.float64), tol=1e-3) == 3
    noisy = drawn(Generator(400, 1, 32, intrinsic_dimension=3, noise=0.5))
    beyond = np.linalg.svd(noisy.astype(np.float64), compute_uv=False)[3:]
    assert beyond.min() > 1


def test_clusters_stand_apart() -> None:
    rows = drawn(Generator(2_000, 1, 32, clusters=5, intrinsic_dimension=32, noise=0))
    distances = np.linalg.norm(rows[:1] - rows[1:], axis=1)
    # Within a cluster 0.5 * sqrt(2 * 32) = 4; between clusters sqrt(2 * 32 * 1.25) = 9; nothing in between.
    share_near = (distances < 6).mean()
    assert 0.1 < share_near < 0.35
    assert ((distances > 5.7) & (distances < 6.3)).mean() < 0.02


def test_a_subspace_larger_than_the_space_is_refused() -> None:
    with pytest.raises(UserError, match="33 intrinsic dimensions do not fit into 32") as raised:
        Generator(10, 1, 32, intrinsic_dimension=33)
    assert "1 to 32" in raised.value.hint
