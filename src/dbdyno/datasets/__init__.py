"""Data sets that a workload is given. They are large, so what they are made with is imported where it is
used."""

from __future__ import annotations

from pathlib import Path

VECTOR_SEARCH = "vector_search"
"""The workload that searches a set of vectors."""
SET_FILE = "data.json"
"""What says of a folder that it holds a set of vectors, and which."""


def placed(dataset: str, folder: Path) -> str:
    """A workload's `dataset`, where it is a path, from the folder that it counts from. What is neither a
    folder nor has an ending is the name of a set that Dyno keeps."""
    place = folder / Path(dataset).expanduser()
    return str(place) if dataset and (place.is_dir() or place.suffix) else dataset
