from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.datasets.vectors import neighbors as module
from dbdyno.datasets.vectors.neighbors import distances_to, exact_neighbors


def brute(train: np.ndarray, test: np.ndarray, distance: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    all_of_them = distances_to(train[None, :, :], test[:, None, :], distance)
    order = np.argsort(all_of_them, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(all_of_them, order, 1)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 300), st.integers(1, 20), st.integers(1, 40), st.sampled_from(["euclidean", "cosine"]),
    st.integers(0, 2**32 - 1), st.floats(0, 1e4), st.integers(1, 60),
)  # fmt: skip
def test_neighbours_are_those_of_comparing_everything(
    vectors: int, queries: int, dimensions: int, distance: str, seed: int, offset: float, count: int
) -> None:
    random = np.random.default_rng(seed)
    train = (random.standard_normal((vectors, dimensions)) + offset).astype(np.float32)
    test = (random.standard_normal((queries, dimensions)) + offset).astype(np.float32)
    count = min(count, vectors)
    found = exact_neighbors(train, test, distance, count)
    _, distances = brute(train, test, distance, count)
    assert found.rows.shape == (queries, count)
    scale = np.linalg.norm(test, axis=1).max() if distance == "euclidean" else 1.0
    assert np.allclose(found.distances, distances, rtol=1e-5, atol=2e-6 * scale)
    again = np.take_along_axis(
        distances_to(train[None, :, :], test[:, None, :], distance), found.rows.astype(np.int64), 1
    )
    assert np.allclose(found.distances, again, rtol=1e-6, atol=1e-7)
    assert all(len(set(row)) == count for row in found.rows.tolist())


def test_blocks_of_every_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    train = random.standard_normal((1_000, 8)).astype(np.float32)
    test = random.standard_normal((70, 8)).astype(np.float32)
    whole = exact_neighbors(train, test, "euclidean", 10)
    monkeypatch.setattr(module, "SCORES_BYTES", 4_000)
    monkeypatch.setattr(module, "QUERY_ROWS", 9)
    monkeypatch.setattr(module, "GATHERED_BYTES", 1)
    pieces = exact_neighbors(train, test, "euclidean", 10)
    assert np.array_equal(whole.rows, pieces.rows)
    assert np.array_equal(whole.distances, pieces.distances)


def test_equal_distances_are_in_the_order_of_rows() -> None:
    train = np.array([[2, 0], [1, 0], [-1, 0], [0, 1], [3, 0]], np.float32)
    found = exact_neighbors(train, np.zeros((1, 2), np.float32), "euclidean", 4)
    assert found.rows.tolist() == [[1, 2, 3, 0]]
    assert found.distances.tolist() == [[1, 1, 1, 2]]


def test_distances_are_those_of_the_definition() -> None:
    left, right = np.array([3, 4], np.float32), np.array([-4, 3], np.float32)
    assert distances_to(left, right, "euclidean") == pytest.approx(np.sqrt(50))
    assert distances_to(left, right, "cosine") == pytest.approx(1)
    assert distances_to(left, left * 7, "cosine") == pytest.approx(0, abs=1e-12)
