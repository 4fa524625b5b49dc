"""What Firebird is given and what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.engines import firebird, firebird_file
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level

LOG = """\

host	Sat Jan  1 12:00:00 2026
	Database: /data/dyno.fdb
	internal Firebird consistency check (wrong record length (183), file: vio.cpp line: 1885)


host	Sat Jan  1 12:00:05 2026
	Sweep is started by SYSDBA
"""


def test_the_entries_of_the_log_that_matter_are_found() -> None:
    problems = firebird._problems(LOG)
    assert len(problems) == 1
    assert problems[0].startswith("Database: /data/dyno.fdb internal Firebird consistency check")
    assert firebird._problems("") == []


@given(st.dictionaries(st.sampled_from(sorted(firebird_file.DPB)), st.integers(0, 2**31 - 1)))
def test_a_parameter_buffer_can_be_read_back(attributes: dict[str, int]) -> None:
    buffer = firebird_file.parameters(attributes)
    assert buffer[0] == firebird_file.DPB_VERSION
    read, position = {}, 1
    while position < len(buffer):
        tag, length = buffer[position], buffer[position + 1]
        read[tag] = buffer[position + 2 : position + 2 + length]
        position += 2 + length
    assert position == len(buffer)
    for name, value in attributes.items():
        assert int.from_bytes(read[firebird_file.DPB[name]], "little") == value


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
    assert firebird._as_attributes({name: level}) == parameter


@pytest.mark.parametrize("level", ["many", -1, 2.5, "64K"])
def test_an_attribute_that_is_no_number_is_refused(level: Level) -> None:
    with pytest.raises(ServerFailed, match="page_buffers"):
        firebird._as_attributes({"page_buffers": level})
