"""What all engines say of themselves in the same way."""

from __future__ import annotations

import pytest

from dbdyno.engines import registry
from dbdyno.frozen import Level

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("engine", "settings", "cache_bytes"),
    [
        ("mariadb", {"innodb_buffer_pool_size": "4G"}, 4 * GIB),
        ("mariadb", {"innodb_buffer_pool_size": 2 * GIB}, 2 * GIB),
        ("mysql", {"innodb_buffer_pool_size": "4G"}, 4 * GIB),
        ("postgresql", {"shared_buffers": "4GB"}, 4 * GIB),
        ("postgresql", {"shared_buffers": 131_072}, GIB),
        ("firebird", {"page_buffers": 65_536, "page_size": 16_384}, GIB),
        ("firebird", {"DefaultDbCachePages": "128K"}, GIB),
        ("sqlite", {"cache_size": "1G"}, GIB),
        ("sqlite", {"cache_size": 65_536, "page_size": 16_384}, GIB),
        ("sqlite", {"cache_size": -1_048_576, "page_size": 16_384}, GIB),
        ("sqlite", {"cache_size": "-1048576"}, GIB),
    ],
)
def test_the_memory_of_a_server_is_its_cache_and_a_base(
    engine: str, settings: dict[str, Level], cache_bytes: int
) -> None:
    memory_bytes = registry.engine(engine).settings.memory_bytes
    base_bytes = memory_bytes({})
    assert 200 * MIB <= base_bytes <= 600 * MIB
    assert cache_bytes <= memory_bytes(settings) <= 1.1 * cache_bytes + base_bytes


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_what_is_no_size_counts_as_none(engine: str) -> None:
    names = ("innodb_buffer_pool_size", "shared_buffers", "cache_size", "page_buffers")
    memory_bytes = registry.engine(engine).settings.memory_bytes
    assert 200 * MIB <= memory_bytes(dict.fromkeys(names, "a lot")) <= memory_bytes({})
