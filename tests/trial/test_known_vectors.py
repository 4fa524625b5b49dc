"""Distances and an index of its own: a right MariaDB passes, and each way to be wrong is noticed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.driver.passwords import Rows, query
from dbdyno.engines.engine import Ask
from dbdyno.engines.mariadb import MARIADB
from dbdyno.errors import DynoError
from dbdyno.host.launch import Launch
from dbdyno.records.record import Check
from dbdyno.study.nouns import Reference
from dbdyno.trial.answers import DISTANCES, TABLE, known_answers, known_vectors
from tests.needs import needs_gcc, skipping_blocked

pytestmark = pytest.mark.engine

VERSION = "11.8"
WORDS = MARIADB.vectors
assert WORDS is not None


@contextmanager
def served(launch: Launch) -> Iterator[str]:
    """A server's URL; skips where there can be none."""
    try:
        installation = MARIADB.obtaining.locate(Reference("mariadb", VERSION))
    except DynoError:
        try:
            installation = MARIADB.obtaining.fetch(VERSION, "", lambda line: None)
        except DynoError as failed:
            pytest.skip(f"mariadb@{VERSION} cannot be had here: {failed.message}")
    folder = Path(tempfile.mkdtemp(prefix="dyno-v-"))
    (folder / "r").mkdir(mode=0o700)
    try:
        with skipping_blocked():
            MARIADB.life.initialise(installation, folder / "data", {})
        server = MARIADB.life.start(installation, folder / "data", folder / "r", {}, launch)
        try:
            yield server.url
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Launch()) as made:
        yield made


@pytest.fixture
def ask(url: str) -> Ask:
    query(url, f"DROP TABLE IF EXISTS {TABLE}")

    def asked(sql: str) -> Rows:
        return query(url, sql)

    return asked


def failing(ask: Ask) -> list[Check]:
    assert WORDS is not None
    return [check for check in known_vectors(ask, WORDS) if not check.holds]


def test_a_right_server_passes(ask: Ask) -> None:
    assert failing(ask) == []


@pytest.mark.parametrize("tiny", [name for name in DISTANCES if "tiny" in name])
def test_a_tiny_distance_is_not_zero(ask: Ask, tiny: str) -> None:
    calls: list[str] = []

    def flushed(sql: str) -> Rows:
        calls.append(sql)
        return [[0.0]] if len(calls) == 1 + list(DISTANCES).index(tiny) else ask(sql)

    [wrong] = failing(flushed)
    assert wrong.name == f"distance_{tiny}" and wrong.detail.startswith("0.0 in place of ")


def test_an_infinite_element_makes_no_vector(ask: Ask) -> None:
    def careless(sql: str) -> Rows:
        return [[0]] if sql.endswith("IS NULL") else ask(sql)

    [wrong] = failing(careless)
    assert wrong.name == "vector_refused"


def test_an_index_that_loses_its_vectors_is_noticed(ask: Ask) -> None:
    def forgetting(sql: str) -> Rows:
        rows = ask(sql)
        return rows[:5] if "ORDER BY" in sql else rows

    [wrong] = failing(forgetting)
    assert wrong.name == "index_of_its_own" and wrong.detail.startswith("0.")


FLUSHING = """
#include <xmmintrin.h>
__attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
"""
"""What a program that was linked with -ffast-math does at its start: tiny numbers are zero in all threads."""


@needs_gcc
def test_a_server_for_which_tiny_numbers_are_zero_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "flush.c").write_text(FLUSHING)
    library = tmp_path / "flush.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "flush.c"], check=True)
    with served(Launch(environment={"LD_PRELOAD": str(library)})) as careless:

        def ask(sql: str) -> Rows:
            return query(careless, sql)

        wrong = [check.name for check in known_answers(ask, MARIADB, "11.8.6") if not check.holds]
        wrong += [check.name for check in failing(ask)]
    assert wrong == ["answer_tiny", "distance_euclidean_tiny", "distance_cosine_tiny"]
