"""Whether a level of PostgreSQL's is in effect, by what the server shows."""

from __future__ import annotations

import pytest

from dbdyno.engines.postgresql import settings
from dbdyno.frozen import Level


@pytest.mark.parametrize(
    ("name", "level", "effective", "same"),
    [
        ("shared_buffers", "128MB", "128MB", True),
        ("shared_buffers", 16384, "128MB", True),  # a bare number counts pages
        ("shared_buffers", "128MB", "64MB", False),
        ("wal_buffers", "-1", "4MB", True),  # the server chose the size
        ("wal_buffers", -1, "16MB", True),
        ("wal_buffers", "16MB", "4MB", False),
        ("wal_compression", "on", "pglz", True),  # a switch once, which has several ways now
        ("wal_compression", "lz4", "pglz", False),
        ("wal_compression", "off", "pglz", False),
        ("transaction_buffers", 0, "256kB", True),
        ("autovacuum_work_mem", -1, "-1", True),
        ("autovacuum_work_mem", -1, "64MB", False),  # this one never shows another size
    ],
)
def test_a_level_that_leaves_a_size_to_the_server_is_in_effect_whatever_it_chose(
    name: str, level: Level, effective: str, same: bool
) -> None:
    assert settings.same(name, level, effective) is same
