"""Servers that search vectors, for tests that need a real one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.engines.registry import engine
from dbdyno.errors import DynoError
from dbdyno.host.launch import Launch
from dbdyno.study.nouns import Reference
from tests.needs import skipping_blocked


@dataclass(frozen=True)
class Searching:
    """A running server and its engine's name."""

    engine: str
    url: str


@pytest.fixture(scope="module", params=["mariadb@11.8", "postgresql@17"])
def searching(request: pytest.FixtureRequest) -> Iterator[Searching]:
    """Each engine that searches vectors, where it can be had: fetched once if it is not here."""
    name, _, version = str(request.param).partition("@")
    made = engine(name)
    try:
        installation = made.obtaining.locate(Reference(name, version))
    except DynoError:
        try:
            installation = made.obtaining.fetch(version, "", lambda line: None)
        except DynoError as failed:
            pytest.skip(f"{request.param} cannot be had here: {failed.message}")
    folder = Path(tempfile.mkdtemp(prefix="dyno-v-"))
    (folder / "r").mkdir(mode=0o700)
    with skipping_blocked():
        made.life.initialise(installation, folder / "data", {})
    server = made.life.start(installation, folder / "data", folder / "r", {}, Launch())
    try:
        yield Searching(name, server.url)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
