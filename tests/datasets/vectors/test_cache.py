from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.datasets import vectors
from dbdyno.datasets.vectors import Generator, VectorSet
from dbdyno.datasets.vectors import cache as module
from dbdyno.datasets.vectors.cache import distances_to, exact_neighbors
from dbdyno.errors import UserError
from dbdyno.host import paths

OPTIONS: dict[str, Any] = {
    "dataset": "", "k": 5, "distance": "euclidean", "vectors": 200, "dimensions": 8, "queries": 20,
    "clusters": 1, "intrinsic_dimension": 4, "noise": 0.1, "data_seed": 1, "ef": 10,
}  # fmt: skip
RANDOM = np.random.default_rng(5)
TRAIN = RANDOM.standard_normal((120, 6)).astype(np.float32)
TEST = RANDOM.standard_normal((9, 6)).astype(np.float32)


class Told(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


def ready(**options: Any) -> VectorSet:
    return vectors.vector_set(OPTIONS | options, Told())


def ann_benchmarks(path: Path, distance: str, spoilt: Sequence[int] = (), scale: float = 1) -> Path:
    """A file as ann-benchmarks has it; `spoilt` queries have random neighbours."""
    name = {"euclidean": "euclidean", "angular": "cosine"}[distance]
    train, test = (each * np.float32(scale) for each in (TRAIN, TEST))
    truth = exact_neighbors(train, test, name, 7)
    for query in spoilt:
        truth.rows[query] = np.random.default_rng(query).choice(len(TRAIN), 7, replace=False)
    with h5py.File(path, "w") as file:
        file.attrs["distance"] = distance
        file["train"], file["test"] = train, test
        file["neighbors"], file["distances"] = truth.rows, truth.distances
    return path


@pytest.mark.usefixtures("homes")
def test_a_generated_set_is_made_once() -> None:
    told = Told()
    first = vectors.vector_set(OPTIONS, told)
    assert len(told) == 2
    again = vectors.vector_set(OPTIONS | {"ef": 99}, told)
    assert (again, len(told)) == (first, 2)
    assert first.folder == paths.cache() / "vectors" / first.digest[:24]
    known = first.neighbors("euclidean")
    assert known is not None
    assert known.count == 100
    assert ready(data_seed=2).digest != first.digest


@pytest.mark.usefixtures("homes")
def test_the_same_content_lies_in_the_cache_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ann_benchmarks(tmp_path / name / "set.hdf5", "euclidean")
    one = ready(dataset=str(tmp_path / "a" / "set.hdf5"))
    other = ready(dataset=str(tmp_path / "b" / "set.hdf5"))
    assert one.folder == other.folder
    assert [each.digest for each in vectors.cached()] == [one.digest]


@pytest.mark.usefixtures("homes")
def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "set.npy"
    np.save(path, TRAIN)
    before = ready(dataset=str(path))
    np.save(path, TRAIN + 1)
    assert ready(dataset=str(path)).digest != before.digest


@pytest.mark.usefixtures("homes")
def test_held_out_queries_are_no_longer_in_the_set(tmp_path: Path) -> None:
    path = tmp_path / "set.npy"
    np.save(path, TRAIN)
    made = ready(dataset=str(path), queries=20)
    assert (made.vectors, made.queries) == (100, 20)
    both = np.concatenate([made.train, made.test])
    assert np.array_equal(np.unique(both, axis=0), np.unique(TRAIN, axis=0))
    with pytest.raises(UserError, match="120 cannot become queries"):
        ready(dataset=str(path), queries=120)


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize(("distance", "name"), [("euclidean", "euclidean"), ("angular", "cosine")])
@pytest.mark.parametrize("scale", [1, 1e-4])
def test_neighbours_that_a_file_brings_are_compared_with_all_of_ours(
    tmp_path: Path, distance: str, name: str, scale: float
) -> None:
    told, path = Told(), ann_benchmarks(tmp_path / "set.hdf5", distance, scale=scale)
    kept = vectors.imported(path, None, 1, 1, told).neighbors(name)
    assert kept is not None
    assert not [line for line in told if "not those of its vectors" in line]


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize("spoilt", [[4], list(range(9))])
@pytest.mark.parametrize("scale", [1, 1e-4])
def test_wrong_neighbours_of_a_single_query_and_of_small_vectors_are_noticed(
    tmp_path: Path, spoilt: list[int], scale: float
) -> None:
    told, path = Told(), ann_benchmarks(tmp_path / "set.hdf5", "euclidean", spoilt, scale)
    kept = vectors.imported(path, None, 1, 1, told).neighbors("euclidean")
    assert "not those of its vectors" in told[-1]
    assert kept is not None
    train, test = (each * np.float32(scale) for each in (TRAIN, TEST))
    assert np.array_equal(kept.rows, exact_neighbors(train, test, "euclidean", 100).rows)


@pytest.mark.usefixtures("homes")
def test_an_angular_file_with_a_row_of_zeros_names_that_row(tmp_path: Path) -> None:
    told, path = Told(), ann_benchmarks(tmp_path / "set.hdf5", "angular")
    with h5py.File(path, "r+") as file:
        file["train"][17] = 0
    made = vectors.imported(path, None, 1, 1, told)
    assert told[-1].startswith(f"vector 17 of {path} is all zeros")
    assert made.neighbors("cosine") is None


@pytest.mark.usefixtures("homes")
def test_a_second_file_can_hold_the_queries(tmp_path: Path) -> None:
    np.save(tmp_path / "base.npy", TRAIN)
    np.save(tmp_path / "queries.npy", TEST)
    made = vectors.imported(tmp_path / "base.npy", tmp_path / "queries.npy", 1, 1, Told())
    assert (made.vectors, made.queries) == (120, 9)
    np.save(tmp_path / "queries.npy", TEST[:, :5])
    with pytest.raises(UserError, match="5 dimensions, not 6"):
        vectors.imported(tmp_path / "base.npy", tmp_path / "queries.npy", 1, 1, Told())


@pytest.mark.usefixtures("homes")
def test_a_k_that_is_too_large_and_a_vector_without_direction_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="k is 201, but the set has only 200 vectors"):
        ready(k=201)
    np.save(tmp_path / "zero.npy", np.vstack([TRAIN, np.zeros((1, 6), np.float32)]))
    assert ready(dataset=str(tmp_path / "zero.npy")).vectors == 101
    with pytest.raises(UserError, match="has no cosine distance"):
        ready(dataset=str(tmp_path / "zero.npy"), distance="cosine")


@pytest.mark.usefixtures("homes")
def test_a_larger_k_gets_more_neighbours() -> None:
    made = ready()
    ready(k=150)
    kept = made.neighbors("euclidean")
    assert kept is not None
    assert kept.count == 150


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize("told", [None, "1"])
def test_neighbours_kept_in_an_older_format_are_computed_again(told: str | None) -> None:
    folder = ready().folder
    rows, form = folder / "euclidean.neighbors.i32", folder / "euclidean.neighbors.format"
    exact = rows.read_bytes()
    rows.write_bytes(bytes(len(exact)))
    form.unlink() if told is None else form.write_text(told)
    assert vectors.find(str(folder)).neighbors("euclidean") is None
    ready()
    assert rows.read_bytes() == exact


@pytest.mark.usefixtures("homes")
def test_a_set_is_found_by_its_digest_or_folder() -> None:
    made = ready()
    assert vectors.find(made.digest[:8]) == made
    assert vectors.find(str(made.folder)) == made
    assert ready(dataset=made.digest[:8]) == made
    with pytest.raises(UserError, match="no vector set in the cache begins with 'zz'"):
        vectors.find("zz")


@pytest.mark.usefixtures("homes")
def test_options_of_vector_search_get_their_folder_and_others_stay_as_they_are() -> None:
    changed = vectors.with_vector_set("vector_search", OPTIONS, Path())
    assert changed == OPTIONS | {"dataset": str(ready().folder)}
    assert OPTIONS["dataset"] == ""
    assert vectors.with_vector_set("tpcb", {"scale": 1}, Path()) == {"scale": 1}


@pytest.mark.usefixtures("homes")
def test_what_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.full((5, 2), np.nan))
    with pytest.raises(UserError, match="holds nan"):
        ready(dataset=str(tmp_path / "bad.npy"), queries=1)
    assert vectors.cached() == []
    assert not list((paths.cache() / "vectors").glob("making-*"))


def test_a_generator_says_what_it_makes() -> None:
    assert Generator(9, 1, 40, clusters=3).origin.startswith("generated 9 x 40 (3 clusters in 32 intrinsic")


def test_a_refused_row_is_named_as_its_file_counts_it(tmp_path: Path) -> None:
    spoilt = TRAIN.copy()
    spoilt[100, 2] = np.nan
    np.save(tmp_path / "nan.npy", spoilt)
    with pytest.raises(UserError, match=r"(vector|query) 100 holds nan in dimension 2"):
        ready(dataset=str(tmp_path / "nan.npy"), queries=40)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "missing.hdf5"}, "cannot read"),
        ({"dataset": "odd.npy"}, "not a .npy file"),
        ({"dataset": "fine.npy", "queries": 120}, "120 cannot become queries"),
        ({"dataset": "fine.npy", "queries": 20, "k": 101}, "k is 101, but the set has only 100 vectors"),
        ({"k": 201}, "k is 201, but the set has only 200 vectors"),
        ({"dataset": "ffff"}, "no vector set in the cache"),
    ],
)
def test_data_that_do_not_do_are_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    np.save(tmp_path / "fine.npy", TRAIN)
    (tmp_path / "odd.npy").write_bytes(b"not an array")
    if "." in (name := options.get("dataset", "")):
        options = options | {"dataset": str(tmp_path / name)}
    before = vectors.cached()
    with pytest.raises(UserError, match=message):
        vectors.require_vectors(OPTIONS | options, Path())
    assert vectors.cached() == before


def test_data_that_do_are_let_pass_and_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "fine.npy", TRAIN)
    before = vectors.cached()
    vectors.require_vectors(OPTIONS | {"dataset": "fine.npy"}, tmp_path)
    vectors.require_vectors(OPTIONS, tmp_path)
    assert vectors.cached() == before


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
