"""Data sets that a workload is given. They are large, so what they are made with is imported where it is
used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

VECTOR_SEARCH = "vector_search"
"""The workload that searches a set of vectors."""
SET_FILE = "data.json"
"""What says of a folder that it holds a set of vectors, and which."""


def placed(dataset: str, folder: Path) -> str:
    """A workload's `dataset`, where it is a path, from the folder that it counts from. What is neither a
    folder nor has an ending is the name of a set that Dyno keeps."""
    place = folder / Path(dataset).expanduser()
    return str(place) if dataset and (place.is_dir() or place.suffix) else dataset


def with_vector_set(
    workload: str, options: Mapping[str, Any], folder: Path, tell: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """A workload's options with `dataset` replaced by the folder of a ready vector set; those of other
    workloads are as they were. Paths count from `folder`. Raises UserError where the data do not do.
    """
    if workload != VECTOR_SEARCH:
        return dict(options)
    # Here, because other workloads need no vectors.
    from dbdyno.datasets.vectors import vector_set

    here = {**options, "dataset": placed(str(options["dataset"]), folder)}
    return {**options, "dataset": str(vector_set(here, tell).folder)}
