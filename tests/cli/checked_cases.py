"""What the tests of checked share with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.host import paths
from dbdyno.obtain.installation import Installation
from dbdyno.prepare_run.study_here import located
from dbdyno.study.nouns import Reference


def line_of(path: Path, part: str) -> str:
    """The place of the first line of a file that holds a text, as messages name it."""
    number = next(number for number, line in enumerate(path.read_text().splitlines(), 1) if part in line)
    return f"line {number}"


def require(engine: str) -> None:
    name, _, version = engine.partition("@")
    if not isinstance(found := located(Reference(name, version)), Installation):
        pytest.skip(f"{engine} cannot be had here: {found.message}")


def nothing_is_left() -> bool:
    journals = list((paths.host() / "journal").glob("*.jsonl"))
    making = list(paths.cache().rglob("*.making"))
    return not journals and not making and not list(paths.runtime().iterdir())
