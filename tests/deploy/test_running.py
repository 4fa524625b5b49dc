"""A server that runs already, found by its URL."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.deploy.made import production_of
from dbdyno.deploy.running import found_server, is_file
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import DriverFailed, UserError
from dbdyno.host.launch import Launch

PRODUCTION = production_of(MARIADB)


def test_a_file_is_told_from_a_server() -> None:
    assert is_file("sqlite:///a/b.sqlite")
    assert not is_file("mysql://root@localhost/test")


def test_a_database_file_is_found_with_its_folder(homes: Path) -> None:
    url = f"sqlite:///{homes}/data.sqlite"
    with LoadProcess({}, Launch()) as load:
        load.query(url, "VACUUM")
    with found_server(url, os.getpid(), SQLITE, production_of(SQLITE), {}) as found:
        assert found.server.version.startswith("3.")
        assert found.knows_data
        assert found.setup.data == homes / "data.sqlite"
        assert os.getpid() in found.process_ids


def test_a_url_of_another_engine_is_refused(homes: Path) -> None:
    with (
        pytest.raises(UserError, match="for MariaDB, and the URL leads to sqlite"),
        found_server(f"sqlite:///{homes}/data.sqlite", None, MARIADB, PRODUCTION, {}),
    ):
        pass


def test_a_file_that_is_not_there_is_refused_and_not_made(homes: Path) -> None:
    with (
        pytest.raises(UserError, match="there is no database"),
        found_server(f"sqlite:///{homes}/data.sqlite", None, SQLITE, production_of(SQLITE), {}),
    ):
        pass
    assert not (homes / "data.sqlite").exists()


def test_what_does_not_answer_and_what_is_no_process_are_told(homes: Path) -> None:
    nowhere = f"mysql://root@localhost/test?socket={homes}/nothing"
    with pytest.raises(DriverFailed), found_server(nowhere, None, MARIADB, PRODUCTION, {}):
        pass
    with (
        pytest.raises(UserError, match="there is no process"),
        found_server(nowhere, 2**22 + 1, MARIADB, PRODUCTION, {}),
    ):
        pass
