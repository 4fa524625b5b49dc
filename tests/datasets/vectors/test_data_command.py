"""`dyno cache data` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid

pytestmark = pytest.mark.usefixtures("homes")
MAKE = (
    "data",
    "make",
    "--vectors",
    "300",
    "--dimensions",
    "16",
    "--queries",
    "20",
    "--intrinsic-dimension",
    "4",
)


def test_a_set_is_made_inspected_and_listed() -> None:
    made = dyno(*MAKE)
    assert made.returncode == 0
    assert "300 x 16, 20 queries" in made.stdout
    assert "100 exact neighbours per query" in made.stdout
    assert "generating" in made.stderr
    told = dyno("cache", "data", "list", "--json").stdout
    require_valid("data-list", told)
    listed = json.loads(told)
    assert [(each["vectors"], each["neighbors"]) for each in listed] == [(300, {"euclidean": 100})]
    digest = listed[0]["digest"]
    assert digest[:24] in dyno("cache", "data", "list").stdout
    assert dyno("cache", "data", "inspect", digest[:6]).stdout == made.stdout


def test_the_estimated_dimension_is_near_that_of_the_subspace() -> None:
    shown = dyno("cache", "data", "make", "--vectors", "5000", "--dimensions", "64",
                 "--intrinsic-dimension", "5", "--noise", "0", "--queries", "100").stdout  # fmt: skip
    estimate = float(shown.partition("intrinsic dimension about ")[2])
    assert 4 < estimate < 6


def test_a_file_is_imported_and_more_neighbours_are_computed(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    np.save(path, np.random.default_rng(1).standard_normal((400, 6)))
    told = dyno("cache", "data", "import", str(path), "--held-out", "100", "--json").stdout
    require_valid("data-inspect", told)
    made = json.loads(told)
    assert (made["vectors"], made["queries"]) == (300, 100)
    more = dyno(
        "cache", "data", "neighbors", made["digest"][:8], "--distance", "cosine", "--k", "150", "--json"
    )
    assert json.loads(more.stdout)["neighbors"] == {"euclidean": 100, "cosine": 150}


def test_mistakes_get_one_message_and_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "page.hdf5").write_text("<html>")
    for arguments, said in [
        (("data", "import", str(tmp_path / "page.hdf5")), "is not an HDF5 file"),
        (("data", "import", str(tmp_path / "none.npy")), "No such file"),
        (("data", "inspect", "abc"), "no vector set in the cache begins with 'abc'"),
        ((*MAKE[:-1], "17"), "17 intrinsic dimensions do not fit into 16"),
        ((*MAKE, "--k", "301"), "k is 301, but the set has only 300 vectors"),
    ]:
        errors = complaint(*arguments)
        assert said in errors
        assert "hint:" in errors
