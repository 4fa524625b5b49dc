"""Firebird's attributes: how a level becomes one."""

from __future__ import annotations

import pytest

from dbdyno.engines.firebird.settings import as_attributes
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level


@pytest.mark.parametrize(
    ("name", "level", "parameter"),
    [
        ("forced_writes", False, {"forced_writes": 0}),
        ("forced_writes", "on", {"forced_writes": 1}),
        ("reserve_space", True, {"no_reserve": 0}),
        ("reserve_space", 0, {"no_reserve": 1}),
        ("page_buffers", 2048, {"page_buffers": 2048}),
        ("sweep_interval", "0", {"sweep_interval": 0}),
    ],
)
def test_an_attribute_becomes_a_number(name: str, level: Level, parameter: dict[str, int]) -> None:
    assert as_attributes({name: level}) == parameter


@pytest.mark.parametrize("level", ["many", -1, 2.5, "64K"])
def test_an_attribute_that_is_no_number_is_refused(level: Level) -> None:
    with pytest.raises(ServerFailed, match="page_buffers"):
        as_attributes({"page_buffers": level})
