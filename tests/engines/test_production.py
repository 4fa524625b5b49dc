"""The files that engines are deployed by: what is written is what the engine's own reader finds in it."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dbdyno.engines.engine import Engine
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.postgresql import POSTGRESQL
from dbdyno.engines.production import Production
from dbdyno.engines.registry import ENGINES
from dbdyno.frozen import Level

NAMES = some.from_regex(r"q[a-z]{2,8}(_[a-z]{2,6})?", fullmatch=True)
WORDS = some.text("abcXYZ0189 _-+.,:=#;'$%()", min_size=1, max_size=20).filter(
    lambda text: text == text.strip() and not text.startswith(("/", "~", "."))
)
LEVELS = some.one_of(some.integers(-1000, 10**12), WORDS)


def production(engine: Engine) -> Production:
    assert engine.production is not None
    return engine.production


@pytest.mark.parametrize("engine", [MARIADB, POSTGRESQL], ids=lambda engine: engine.name)
@given(settings=some.dictionaries(NAMES, LEVELS, min_size=1, max_size=5))
def test_what_is_written_is_read_again(engine: Engine, settings: dict[str, Level]) -> None:
    text = production(engine).written(settings)
    found = engine.settings.configured(text, None)
    assert {line.name: line.level for line in found} == {name: str(level) for name, level in settings.items()}
    assert [line.untaken for line in found] == [""] * len(settings)


def test_a_log_whose_value_would_name_a_file_is_switched_by_its_name() -> None:
    written = production(MARIADB).written
    assert written({"log_bin": False}).splitlines() == ["[mysqld]", "skip_log_bin"]
    assert written({"log_bin": True}).splitlines() == ["[mysqld]", "log_bin"]


def test_switches_are_words_of_the_engine() -> None:
    texts = {name: production(ENGINES[name]).written({"a": True}) for name in ("postgresql", "firebird")}
    assert texts == {"postgresql": "a = ON\n", "firebird": "a = true\n"}


def test_statements_of_sqlite_have_their_effect() -> None:
    settings: dict[str, Level] = {"synchronous": "normal", "cache_size": "8M", "temp_store": "memory"}
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(production(ENGINES["sqlite"]).written(settings))
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings]
    assert found == [1, -8192, 2]


@pytest.mark.parametrize(
    ("name", "level", "command"),
    [
        ("page_buffers", 5000, "gfix -buffers 5000 DATABASE"),
        ("forced_writes", False, "gfix -write async DATABASE"),
        ("forced_writes", "on", "gfix -write sync DATABASE"),
        ("sweep_interval", 0, "gfix -housekeeping 0 DATABASE"),
        ("reserve_space", True, "gfix -use reserve DATABASE"),
        ("reserve_space", False, "gfix -use full DATABASE"),
        ("page_size", 16384, "gbak -b DATABASE backup.fbk; gbak -c -p 16384 backup.fbk NEW_DATABASE"),
    ],
)
def test_what_stands_in_a_firebird_database_has_a_command(name: str, level: Level, command: str) -> None:
    assert production(ENGINES["firebird"]).in_data[name](level) == command


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
def test_what_stands_in_the_data_are_settings_of_the_engine(engine: Engine) -> None:
    known = production(engine).in_data.keys()
    assert known <= engine.settings.CREATION | {"page_buffers", "forced_writes", "sweep_interval"}


@pytest.mark.parametrize(
    ("name", "version", "release"),
    [
        ("mariadb", "11.8.6-MariaDB-0+deb13u1 from Debian", "11.8"),
        ("mysql", "9.7.4", "9.7"),
        ("postgresql", "17.12 (Debian 17.12-1)", "17"),
        ("firebird", "5.0.4", "5"),
    ],
)
def test_a_release_is_the_beginning_of_a_version(name: str, version: str, release: str) -> None:
    assert production(ENGINES[name]).release(version) == release
