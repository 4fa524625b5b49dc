from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from dbdyno.datasets.vectors.files import blocks, open_vectors
from dbdyno.errors import UserError

ROWS = np.arange(30, dtype=np.float32).reshape(10, 3) / 7


def hdf5(path: Path, **tables: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["distance"] = "angular"
        for name, table in tables.items():
            file[name] = table
    return path


def fvecs(path: Path, rows: np.ndarray = ROWS) -> Path:
    heads = np.full((len(rows), 1), rows.shape[1], "<i4").view("<f4")
    np.hstack([heads, rows.astype("<f4")]).tofile(path)
    return path


def fbin(path: Path, rows: np.ndarray = ROWS) -> Path:
    path.write_bytes(np.array(rows.shape, "<u4").tobytes() + rows.astype("<f4").tobytes())
    return path


def npy(path: Path, rows: np.ndarray = ROWS) -> Path:
    np.save(path, rows)
    return path


def read(path: Path) -> np.ndarray:
    return np.concatenate(list(blocks(open_vectors(path).train)))


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    for path in (
        hdf5(tmp_path / "a.hdf5", train=ROWS),
        npy(tmp_path / "a.npy"),
        npy(tmp_path / "wide.npy", ROWS.astype(np.float64)),
        npy(tmp_path / "turned.npy", np.asfortranarray(ROWS)),
        fvecs(tmp_path / "a.fvecs"),
        fbin(tmp_path / "a.fbin"),
    ):
        assert np.array_equal(read(path), ROWS), path
        assert read(path).dtype == np.float32


def test_hdf5_brings_queries_and_neighbours(tmp_path: Path) -> None:
    rows = np.zeros((2, 4), np.int32)
    file = open_vectors(
        hdf5(
            tmp_path / "a.hdf5", train=ROWS, test=ROWS[:2], neighbors=rows, distances=rows.astype(np.float32)
        )
    )
    truth = file.truth()
    assert file.test is not None
    assert file.test.shape == (2, 3)
    assert file.distance == "cosine"
    assert truth is not None
    assert truth.count == 4


def test_blocks_can_be_picked_from(tmp_path: Path) -> None:
    table = open_vectors(npy(tmp_path / "a.npy")).train
    assert np.array_equal(np.concatenate(list(blocks(table, lambda start, stop: slice(5, 7)))), ROWS[5:7])


def refused(path: Path) -> UserError:
    with pytest.raises(UserError) as raised:
        open_vectors(path)
    assert str(path) in raised.value.message
    return raised.value


def test_a_file_that_is_missing_empty_or_of_another_kind_is_named(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.hdf5").message
    (tmp_path / "empty.npy").touch()
    assert "is empty" in refused(tmp_path / "empty.npy").message
    (tmp_path / "a.csv").write_text("1,2")
    assert ".fvecs" in refused(tmp_path / "a.csv").hint


def test_hdf5_that_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "a.hdf5").write_text("<html>404 not found</html>")
    assert "is not an HDF5 file" in refused(tmp_path / "a.hdf5").message
    whole = hdf5(tmp_path / "whole.hdf5", train=np.zeros((1000, 8), np.float32)).read_bytes()
    (tmp_path / "cut.hdf5").write_bytes(whole[: len(whole) // 2])
    assert "damaged or cut short" in refused(tmp_path / "cut.hdf5").message
    assert "it has: base" in refused(hdf5(tmp_path / "other.hdf5", base=ROWS)).message
    mixed = hdf5(tmp_path / "mixed.hdf5", train=ROWS, test=np.zeros((2, 4)))
    assert "vectors have 3 dimensions, queries 4" in refused(mixed).message


@pytest.mark.parametrize("cut", [1, 5, 20, 61])
def test_files_cut_short_are_refused(tmp_path: Path, cut: int) -> None:
    for path in (npy(tmp_path / "a.npy"), fvecs(tmp_path / "a.fvecs"), fbin(tmp_path / "a.fbin")):
        path.write_bytes(path.read_bytes()[:-cut])
        refused(path)


def test_rows_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    path = fvecs(tmp_path / "a.fvecs")
    content = bytearray(path.read_bytes())
    content[16 * 4 : 16 * 4 + 4] = np.array([9], "<i4").tobytes()
    path.write_bytes(content)
    assert "row 4 has 9 dimensions, those before it 3" in refused(path).message
    (tmp_path / "b.fvecs").write_bytes(np.array([0, 1], "<i4").tobytes())
    assert "claims 0 dimensions" in refused(tmp_path / "b.fvecs").message
    assert "not a table" in refused(npy(tmp_path / "flat.npy", np.zeros(5))).message
    assert "holds no vectors" in refused(npy(tmp_path / "none.npy", np.zeros((0, 3)))).message
    assert "not plain numbers" in refused(npy(tmp_path / "text.npy", np.array([["a"]]))).message
    objects = npy(tmp_path / "objects.npy", np.array([[{}]], object))
    assert refused(objects).message == f"{objects} is not a .npy file of plain numbers, or it is cut short"
