"""Data sets of vectors: made by a generator or read from a file, with exact neighbours, cached by content.

The workload `vector_search` is told of a set by the folder that holds it; `with_vector_set` turns what a
study says (a file, or a generator's parameters) into that folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno.datasets import VECTOR_SEARCH, placed
from dbdyno.datasets.vectors.cache import (
    cached,
    find,
    generated,
    imported,
    require_held_out,
    with_neighbors,
)
from dbdyno.datasets.vectors.files import open_vectors
from dbdyno.datasets.vectors.generate import Generator
from dbdyno.datasets.vectors.vector_set import Neighbors, VectorSet, open_vector_set
from dbdyno.errors import UserError
from dbdyno.host.cache import Tell, silently

__all__ = [
    "Generator",
    "Neighbors",
    "VectorSet",
    "cached",
    "find",
    "generated",
    "generator_of",
    "imported",
    "open_vector_set",
    "require_vectors",
    "vector_set",
    "with_neighbors",
    "with_vector_set",
]


def with_vector_set(
    workload: str, options: Mapping[str, Any], folder: Path, tell: Tell = silently
) -> dict[str, Any]:
    """A workload's options with `dataset` replaced by the folder of a ready vector set; those of other
    workloads are as they were. Paths count from `folder`. Raises UserError where the data do not do.
    """
    if workload != VECTOR_SEARCH:
        return dict(options)
    return {**options, "dataset": str(vector_set(_placed(options, folder), tell).folder)}


def _placed(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    return {**options, "dataset": placed(str(options["dataset"]), folder)}


def vector_set(options: Mapping[str, Any], tell: Tell) -> VectorSet:
    """The set that options of `vector_search` name, with the exact neighbours that they ask for."""
    name = str(options["dataset"])
    if not name:
        found = generated(generator_of(options), tell)
    elif Path(name).is_dir() or not (path := Path(name).expanduser()).suffix:
        found = find(name)
    else:
        found = imported(path, None, int(options["queries"]), int(options["data_seed"]), tell)
        found = replace(found, origin=str(path))
    return with_neighbors(found, str(options["distance"]), int(options["k"]), tell)


def require_vectors(options: Mapping[str, Any], folder: Path) -> None:
    """Raises UserError where the vectors that options of `vector_search` name cannot be had or do not do, as
    far as can be told without making or reading them. Paths count from `folder`.
    """
    options = _placed(options, folder)
    name, k = str(options["dataset"]), int(options["k"])
    if not name:
        generator = generator_of(options)
        _require_enough(k, generator.vectors, generator.origin)
    elif Path(name).is_dir() or not (path := Path(name).expanduser()).suffix:
        found = find(name)
        _require_enough(k, found.vectors, found.origin)
        if options["distance"] == "cosine":
            found.require_directions()
    else:
        file = open_vectors(path)
        queries = int(options["queries"]) if file.test is None else 0
        require_held_out(file, queries)
        _require_enough(k, file.vectors - queries, str(path))


def _require_enough(k: int, vectors: int, origin: str) -> None:
    if k > vectors:
        raise UserError(
            f"k is {k}, but the set has only {vectors} vectors ({origin})",
            f"ask for 1 to {vectors} neighbours",
        )


def generator_of(options: Mapping[str, Any]) -> Generator:
    """The generator that options of `vector_search` describe."""
    return Generator(
        vectors=int(options["vectors"]),
        queries=int(options["queries"]),
        dimensions=int(options["dimensions"]),
        clusters=int(options["clusters"]),
        intrinsic_dimension=int(options["intrinsic_dimension"]),
        noise=float(options["noise"]),
        seed=int(options["data_seed"]),
    )
