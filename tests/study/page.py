"""Writes the tables of the study's reference as they are declared: `python -m tests.study.page`."""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.study import excludes
from dbdyno.study.tables import (
    DATA,
    DRIVER,
    FRONT,
    GOAL,
    HOST,
    MEANWHILE,
    PHASE,
    RANGE,
    RESTARTS,
    SEARCH,
    SERVER,
    SOAK,
    STUDY,
    WORKLOAD,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "study-format.md"
SECTIONS = (
    STUDY,
    FRONT,
    WORKLOAD,
    PHASE,
    DATA,
    SERVER,
    DRIVER,
    RANGE,
    SEARCH,
    RESTARTS,
    MEANWHILE,
    GOAL,
    SOAK,
    HOST,
)
"""In the order of the page."""
TABLE = re.compile(r"^\| key \| default \| is \|\n(?:\|.*\n)+", re.MULTILINE)
EXCLUDED = re.compile(r"^\| this \| does not go with \| because \|\n(?:\|.*\n)+", re.MULTILINE)


def as_declared(page: str) -> str:
    """The page with its tables as they are declared."""
    tables = iter(SECTIONS)
    page = TABLE.sub(lambda _: "\n".join(next(tables).page()) + "\n", page)
    return EXCLUDED.sub(lambda _: "\n".join(excludes.page()) + "\n", page)


if __name__ == "__main__":
    PAGE.write_text(as_declared(PAGE.read_text()))
