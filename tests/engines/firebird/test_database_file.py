"""What Firebird is given when its database file is made or opened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.engines.firebird import database_file


@given(st.dictionaries(st.sampled_from(sorted(database_file.DPB)), st.integers(0, 2**31 - 1)))
def test_a_parameter_buffer_can_be_read_back(attributes: dict[str, int]) -> None:
    buffer = database_file.parameters(attributes)
    assert buffer[0] == database_file.DPB_VERSION
    read, position = {}, 1
    while position < len(buffer):
        tag, length = buffer[position], buffer[position + 1]
        read[tag] = buffer[position + 2 : position + 2 + length]
        position += 2 + length
    assert position == len(buffer)
    for name, value in attributes.items():
        assert int.from_bytes(read[database_file.DPB[name]], "little") == value
