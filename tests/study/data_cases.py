"""What the tests of data share with others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from dbdyno.errors import Mistake
from dbdyno.study import Factor, workload_offers
from dbdyno.study.nouns import GivenData, Reference
from tests.study.catalogue import CATALOGUE, WORKLOADS

SCRIPT = {"name": "script", "options": [{"name": "file", "type": "text", "default": ""}]}


def _check(data: GivenData, folder: Path, _engine: Reference, _factors: tuple[Factor, ...]) -> list[Mistake]:
    return [Mistake(0, f"there is no {path}") for path in data.paths(folder) if "missing" in path.name]


NAMES = replace(
    CATALOGUE,
    workloads=workload_offers(json.dumps([*WORKLOADS, SCRIPT])),
    given=_check,
)
