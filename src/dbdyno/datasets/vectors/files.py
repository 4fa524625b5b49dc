"""Vectors in files of others: HDF5 as ann-benchmarks writes it, .npy, .fvecs and .fbin.

Nothing is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dbdyno.datasets.vectors.vector_set import DIMENSIONS_MAX, VECTORS_MAX, Floats, Neighbors, Rows
from dbdyno.errors import UserError, remedy

BLOCK_BYTES = 32 << 20
DISTANCE_NAMES = {"euclidean": "euclidean", "angular": "cosine", "cosine": "cosine"}
"""What ann-benchmarks calls a distance, and what it is called here."""


class NumberTable(Protocol):
    """Rows of numbers: a memory map or a data set of HDF5."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Any, /) -> Any: ...


@dataclass(frozen=True)
class VectorFile:
    """An open file. `test` and the truth are there where the file brings them."""

    path: Path
    train: NumberTable
    test: NumberTable | None = None
    distance: str | None = None
    neighbors: NumberTable | None = None
    distances: NumberTable | None = None

    @property
    def vectors(self) -> int:
        return self.train.shape[0]

    @property
    def dimensions(self) -> int:
        return self.train.shape[1]

    def truth(self) -> Neighbors | None:
        """The neighbours that the file claims; whether they are right is for the caller to find out."""
        if self.neighbors is None or self.distances is None or self.neighbors.shape != self.distances.shape:
            return None
        rows: Rows = np.asarray(self.neighbors[:], np.int32)
        return Neighbors(rows, np.asarray(self.distances[:], np.float32))


def open_vectors(path: Path) -> VectorFile:
    """Opens a file by its ending. Raises UserError for one that is missing, empty, cut short or something
    else.
    """
    try:
        size_bytes = path.stat().st_size
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}", remedy(error, "name a file of vectors")
        ) from None
    reader = _READERS.get(path.suffix.lower())
    if reader is None or not path.is_file():
        known = f"known endings: {', '.join(_READERS)}"
        raise UserError(f"{path} does not have the ending of a file of vectors", known)
    if size_bytes == 0:
        raise UserError(f"{path} is empty", "fetch or make it again")
    try:
        found = reader(path)
    except PermissionError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    for what, table in (("vectors", found.train), ("queries", found.test)):
        _require_shape(path, what, table)
    if found.test is not None and found.test.shape[1] != found.dimensions:
        raise UserError(
            f"{path}: vectors have {found.dimensions} dimensions, queries {found.test.shape[1]}",
            "both need the same number of dimensions",
        )
    return found


def blocks(table: NumberTable, keep: Callable[[int, int], Any] | None = None) -> Iterator[Floats]:
    """A table's rows as 32-bit floats, block by block; `keep(start, stop)` picks among a block's rows."""
    rows = max(1, BLOCK_BYTES // (8 * table.shape[1]))
    for start in range(0, table.shape[0], rows):
        block = np.asarray(table[start : start + rows])
        if keep is not None:
            block = block[keep(start, start + len(block))]
        if len(block):
            # What does not fit becomes infinite, and the writer of the set says where.
            with np.errstate(over="ignore"):
                yield block.astype(np.float32)


def _require_shape(path: Path, what: str, table: NumberTable | None) -> None:
    if table is None:
        return
    if len(table.shape) != 2:
        raise UserError(f"{path}: its {what} are not a table of rows", "write one vector a row")
    rows, dimensions = table.shape
    if rows == 0 or dimensions == 0:
        raise UserError(f"{path} holds no {what}", f"its table has the shape {rows} x {dimensions}")
    if rows > VECTORS_MAX or dimensions > DIMENSIONS_MAX:
        raise UserError(
            f"{path}: {rows} {what} of {dimensions} dimensions are too many",
            f"at most {VECTORS_MAX} rows of {DIMENSIONS_MAX} dimensions",
        )
    kind = np.dtype(getattr(table, "dtype", np.float32)).kind
    if kind not in "fiu":
        raise UserError(f"{path}: its {what} are not plain numbers", "write floats or whole numbers")


def _hdf5(path: Path) -> VectorFile:
    # Here, because it takes longer to import than most commands run.
    import h5py

    if not h5py.is_hdf5(path):
        raise UserError(
            f"{path} is not an HDF5 file, although its name says so", "see what it is with: file PATH"
        )
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise UserError(f"{path} is damaged or cut short: {_sentence(error)}", "fetch it again") from None
    tables = {name: file[name] for name in file if isinstance(file[name], h5py.Dataset)}
    if "train" not in tables:
        there = ", ".join(tables) or "none"
        raise UserError(
            f"{path} holds no data set `train` (it has: {there})", "write it in ann-benchmarks' layout"
        )
    return VectorFile(
        path,
        tables["train"],
        tables.get("test"),
        DISTANCE_NAMES.get(str(file.attrs.get("distance", ""))),
        tables.get("neighbors"),
        tables.get("distances"),
    )


def _sentence(error: OSError) -> str:
    """The innermost reason out of h5py's long text."""
    return str(error).rpartition("(")[2].rstrip(")") or str(error)


def _npy(path: Path) -> VectorFile:
    try:
        return VectorFile(path, np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError, OSError):
        # What numpy says of it is advice for programmers.
        raise UserError(
            f"{path} is not a .npy file of plain numbers, or it is cut short",
            "write it with numpy.save from an array of float32, one row a vector",
        ) from None


def _fvecs(path: Path) -> VectorFile:
    """Each row is its dimension in 32 bits, then that many 32-bit floats."""
    words = path.stat().st_size // 4
    dimensions = int(np.fromfile(path, "<i4", 1)[0]) if words else 0
    if not 0 < dimensions <= DIMENSIONS_MAX:
        raise UserError(f"{path} is not an .fvecs file: its first row claims {dimensions} dimensions")
    rows, rest = divmod(path.stat().st_size, 4 * (dimensions + 1))
    if rest:
        raise UserError(f"{path} is cut short: {rest} bytes are left after row {rows - 1}", "fetch it again")
    table = np.memmap(path, "<i4", "r", shape=(rows, dimensions + 1))
    wrong = np.flatnonzero(table[:, 0] != dimensions)
    if len(wrong):
        raise UserError(
            f"{path}: row {wrong[0]} has {table[wrong[0], 0]} dimensions, those before it {dimensions}",
            "all rows need the same number of dimensions",
        )
    return VectorFile(path, table[:, 1:].view("<f4"))


def _fbin(path: Path) -> VectorFile:
    """Counts of rows and dimensions in 32 bits each, then the floats row by row."""
    size_bytes = path.stat().st_size
    if size_bytes < 8:
        raise UserError(f"{path} is cut short: it has no whole header", "fetch it again")
    rows, dimensions = (int(number) for number in np.fromfile(path, "<u4", 2))
    needed_bytes = 8 + 4 * rows * dimensions
    if size_bytes != needed_bytes:
        raise UserError(
            f"{path} has {size_bytes} bytes; {rows} x {dimensions}, as its header says, take {needed_bytes}",
            "it is cut short, or it is not an .fbin file: fetch it again",
        )
    return VectorFile(path, np.memmap(path, "<f4", "r", offset=8, shape=(rows, dimensions)))


_READERS: dict[str, Callable[[Path], VectorFile]] = {
    ".hdf5": _hdf5,
    ".h5": _hdf5,
    ".npy": _npy,
    ".fvecs": _fvecs,
    ".fbin": _fbin,
}
