"""What the tests of load share with others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.calls import dyno


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of SQLite's with the tables of TPC-B."""
    url = f"sqlite://{tmp_path_factory.mktemp('load') / 'test.db'}?synchronous=off"
    assert dyno("load", "prepare", "tpcb", "--url", url).returncode == 0
    return url


def tally(url: str, *options: str, workload: str = "tpcb") -> dict[str, Any]:
    """What a short load counted."""
    short = [] if "--time" in options else ["--time", "1"]
    said = dyno("load", "run", workload, "--url", url, "--warmup", "0", *short, *options, "--json")
    assert said.returncode == 0, said.stderr
    return dict(json.loads(said.stdout))
