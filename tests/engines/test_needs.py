"""Which settings cannot matter beside others."""

from __future__ import annotations

import pytest

from dbdyno.engines.needs import Need, unmet
from dbdyno.frozen import Level

NEEDS = (
    Need(("sync", "format"), "log", off=("OFF",), unset="OFF", why="so there is no log"),
    Need(("siblings",), "delay", off=("0",), unset="0", why="so nothing waits"),
)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"sync": 1}, {"sync": "log is OFF, so there is no log"}),
        ({"sync": 1, "log": False}, {"sync": "log is OFF, so there is no log"}),
        ({"sync": 1, "log": "/data/name"}, {}),
        ({"sync": 1, "log": True, "siblings": 5}, {"siblings": "delay is 0, so nothing waits"}),
        ({"siblings": 5, "delay": "10"}, {}),
        ({"log": False}, {}),
    ],
)
def test_a_setting_cannot_matter_while_what_it_needs_is_off(
    settings: dict[str, Level], found: dict[str, str]
) -> None:
    assert unmet(NEEDS, settings) == found
