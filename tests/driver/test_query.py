"""Asking one question from Dyno's own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.driver.query import query
from dbdyno.errors import DriverFailed


def test_the_rows_of_one_statement_come_back(tmp_path: Path) -> None:
    assert query(f"sqlite://{tmp_path}/empty.sqlite", "SELECT 1, 'two', NULL, 4.5") == [[1, "two", None, 4.5]]


def test_what_the_server_refuses_is_told_in_the_drivers_words(tmp_path: Path) -> None:
    with pytest.raises(DriverFailed, match="nothing_here") as failed:
        query(f"sqlite://{tmp_path}/empty.sqlite", "SELECT * FROM nothing_here")
    assert failed.value.kind == "server"


def test_a_server_that_is_not_there_is_a_failure_to_connect(tmp_path: Path) -> None:
    with pytest.raises(DriverFailed) as failed:
        query(f"mysql://dyno@localhost/dyno?socket={tmp_path}/none.sock", "SELECT 1")
    assert failed.value.kind == "connect"
