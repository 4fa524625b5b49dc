"""Whether a server has what it is started with."""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines import registry
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.study.nouns import Reference
from dbdyno.trial.beside import not_in_effect


def test_a_setting_that_keeps_the_server_from_starting_is_found_among_others(homes: Path) -> None:
    engine = registry.engine("sqlite")
    installation = engine.obtaining.locate(Reference("sqlite"))
    settings: dict[str, Level] = {
        "cache_size": -2000,
        "sinchronous": "OFF",
        "synchronous": "OFF",
        "mmap_size": 9_000_000_000_000,
    }
    found = not_in_effect(engine, installation, settings)
    assert found.keys() == {"sinchronous", "mmap_size"}
    assert "does not start with it" in found["sinchronous"] and "`sinchronous`" in found["sinchronous"]
    assert "did not take mmap_size" in found["mmap_size"]
    assert not list((paths.cache() / "trials").iterdir())


def test_nothing_is_started_for_nothing(homes: Path) -> None:
    engine = registry.engine("sqlite")
    assert not_in_effect(engine, engine.obtaining.locate(Reference("sqlite")), {}) == {}
    assert not (paths.cache() / "trials").exists()
