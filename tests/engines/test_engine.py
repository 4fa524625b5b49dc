"""What the levels of engines give up, and what a search may vary of them without that."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.engine import Risk
from dbdyno.frozen import Level
from dbdyno.layers.registry import gives_up
from dbdyno.study.space import Promise

ENGINES = sorted(registry.ENGINES)


def test_a_level_keeps_its_promise_however_it_is_spelled() -> None:
    risk = Risk(Promise.DURABILITY, ("ON", 1))
    assert risk.gives_up("on") is risk.gives_up(True) is risk.gives_up("1") is None
    assert risk.gives_up("OFF") is risk.gives_up(2) is Promise.DURABILITY


@pytest.mark.parametrize("name", ENGINES)
def test_what_makes_a_commit_durable_gives_nothing_up(name: str) -> None:
    settings = registry.engine(name).settings
    for setting, levels in settings.DURABLE.items():
        assert setting in settings.RISKS
        assert all(settings.RISKS[setting].gives_up(level) is None for level in levels)


@pytest.mark.parametrize(
    ("engine", "factor", "level", "promise"),
    [
        ("mariadb", "config.innodb_flush_log_at_trx_commit", 2, Promise.DURABILITY),
        ("mariadb", "config.innodb_flush_log_at_trx_commit", 1, None),
        ("mariadb", "config.innodb_buffer_pool_size", "1G", None),
        ("postgresql", "config.synchronous_commit", "off", Promise.DURABILITY),
        ("postgresql", "config.full_page_writes", False, Promise.INTEGRITY),
        ("sqlite", "config.synchronous", "normal", Promise.DURABILITY),
        ("firebird", "config.forced_writes", False, Promise.DURABILITY),
        ("mariadb", "storage.device", "ram", Promise.DURABILITY),
        ("mariadb", "storage.mount", "noatime,nobarrier", Promise.DURABILITY),
        ("mariadb", "storage.mount", "noatime", None),
        ("mariadb", "build.hardening", "off", Promise.SECURITY),
        ("mariadb", "memory.allocator", "jemalloc", None),
        ("mariadb", "workload.clients", 8, None),
    ],
)
def test_each_layer_says_what_a_level_gives_up(
    engine: str, factor: str, level: Level, promise: Promise | None
) -> None:
    assert gives_up(factor, level, registry.engine(engine)) is promise


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_proposed_for_a_search_gives_nothing_up(name: str) -> None:
    settings = registry.engine(name).settings
    proposals = settings.searchable(4 << 30)
    assert proposals and all(one.why for one in proposals)
    for one in proposals:
        space = tomllib.loads(f"space = {one.space}")["space"]
        levels = space if isinstance(space, list) else [space["from"], space["to"]]
        risk = settings.RISKS.get(one.name)
        assert risk is None or all(risk.gives_up(level) is None for level in levels)


@pytest.mark.parametrize("name", ENGINES)
def test_the_documentation_names_what_gives_something_up(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "layers.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    for setting, risk in registry.engine(name).settings.RISKS.items():
        assert any(f"`{setting}`" in row and f"| {risk.promise} |" in row for row in rows), setting
