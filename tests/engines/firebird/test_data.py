"""How Firebird passes a database through a backup."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.firebird import database_file
from dbdyno.engines.firebird import server as life
from dbdyno.engines.firebird.data import BACKUP, pass_through
from dbdyno.engines.firebird.server import DATABASE
from dbdyno.errors import EngineMissing, ServerFailed
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Reference

pytestmark = pytest.mark.engine


@pytest.fixture
def installation() -> Installation:
    try:
        return life.locate(Reference("firebird"))
    except EngineMissing as missing:
        pytest.skip(f"firebird cannot be had here: {missing.message}")


def test_a_restored_database_has_the_rows_of_the_backup(installation: Installation, tmp_path: Path) -> None:
    data = tmp_path / "data"
    life.initialise(installation, data, {"page_size": 16384})
    for statements, expected in (
        (["CREATE TABLE kept (a BIGINT)", "INSERT INTO kept VALUES (41)"], 41.0),
        ([], 41.0),
    ):
        runtime = tmp_path / f"r{len(statements)}"
        server = life.start(installation, data, runtime, {}, Launch())
        with LoadProcess(server.driver_environment, Launch()) as load:
            for one in statements:
                load.query(server.url, one)
            [[value]] = load.query(server.url, "SELECT a FROM kept")
            [[page]] = load.query(server.url, "SELECT MON$PAGE_SIZE FROM MON$DATABASE")
        assert (float(value or 0), float(page or 0)) == (expected, 16384.0)
        if statements:
            pass_through("backup", installation, data, tmp_path / "old")
            assert [one.name for one in data.iterdir()] == [BACKUP]
            pass_through("restore", installation, data, tmp_path / "new")
            assert [one.name for one in data.iterdir()] == [DATABASE]


def test_a_backup_that_is_none_is_told_in_firebirds_words(installation: Installation, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / BACKUP).write_text("no backup")
    with pytest.raises(ServerFailed, match=r"could not restore dyno\.fdb: expected backup"):
        pass_through("restore", installation, data, tmp_path / "new")


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
