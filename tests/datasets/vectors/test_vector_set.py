from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dbdyno.datasets.vectors.vector_set import Neighbors, VectorSet, open_vector_set, write_vector_set
from dbdyno.errors import DynoError, UserError

TRAIN = np.arange(12, dtype=np.float32).reshape(6, 2) + 1
TEST = np.array([[1.0, 2.0]], np.float32)


def written(folder: Path, train: np.ndarray = TRAIN, test: np.ndarray = TEST) -> VectorSet:
    return write_vector_set(folder, "here", 2, [train[:4], train[4:]], [test])


def test_a_set_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = written(tmp_path / "set")
    found = open_vector_set(tmp_path / "set")
    assert found == made
    assert (found.vectors, found.dimensions, found.queries) == (6, 2, 1)
    assert np.array_equal(found.train, TRAIN)
    assert np.array_equal(found.test, TEST)
    assert found.neighbors("euclidean") is None


def test_the_digest_is_that_of_the_content_and_not_of_its_blocks(tmp_path: Path) -> None:
    one = written(tmp_path / "one")
    other = write_vector_set(tmp_path / "other", "elsewhere", 2, [TRAIN], [TEST])
    changed = written(tmp_path / "changed", test=TEST + 1)
    assert one.digest == other.digest != changed.digest


def test_neighbours_are_kept_per_distance(tmp_path: Path) -> None:
    made = written(tmp_path / "set")
    rows, distances = np.array([[0, 1]], np.int32), np.array([[0.0, 2.5]], np.float32)
    made.keep_neighbors("euclidean", Neighbors(rows, distances), tmp_path)
    kept = open_vector_set(made.folder).neighbors("euclidean")
    assert kept is not None
    assert kept.count == 2
    assert np.array_equal(kept.rows, rows)
    assert np.array_equal(kept.distances, distances)
    assert made.neighbors("cosine") is None


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (np.array([[1, 2], [np.nan, 1]]), "vector 1 holds nan in dimension 0"),
        (np.array([[1, 2], [1, np.inf]]), "vector 1 holds inf in dimension 1"),
        (np.array([[1, 2, 3]]), "a vector has 3 dimensions, not 2"),
        (np.zeros((0, 2)), "holds no vector"),
    ],
)
def test_what_is_no_vector_is_refused_with_its_place(tmp_path: Path, train: np.ndarray, said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        write_vector_set(tmp_path / "set", "here", 2, [train.astype(np.float32)], [TEST])
    assert raised.value.hint
    assert not (tmp_path / "set").exists()


def test_a_zero_vector_has_no_direction(tmp_path: Path) -> None:
    train = TRAIN.copy()
    train[3] = 0
    made = written(tmp_path / "set", train=train)
    assert made.zero_vector == 3
    with pytest.raises(UserError, match="vector 3 of here is all zeros"):
        made.require_directions()
    written(tmp_path / "other").require_directions()


def test_a_folder_without_a_set_or_with_a_broken_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no vector set"):
        open_vector_set(tmp_path)
    made = written(tmp_path / "set")
    (made.folder / "train.f32").write_bytes(b"short")
    with pytest.raises(DynoError, match="damaged"):
        open_vector_set(made.folder)
    (made.folder / "data.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(UserError, match="another version"):
        open_vector_set(made.folder)
