"""A study, and a Slurm whose nodes are idle when a test begins with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.slurm_cluster import Cluster, cluster

STUDY = """
title  = "Does the page cache of SQLite matter?"
engine = "sqlite"
blocks = 2
slice  = "0.1s"
[workload]
name     = "tpcb"
clients  = 1
warmup   = "0s"
duration = "0.3s"
[factors]
"config.cache_size" = [-2000, -20000]
"""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    with cluster() as made:
        yield made


@pytest.fixture
def study(homes: Path, slurm: Cluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in slurm.variables.items():
        monkeypatch.setenv(name, value)
    slurm.wait_until_idle()
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path
