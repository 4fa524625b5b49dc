"""What servers share: their data directories, and the URL that leads to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.server import make_data, require_data, url_of
from dbdyno.errors import ServerFailed, UserError
from tests.fakes import INSTALLATION


def test_a_data_directory_that_cannot_be_made_is_not_left_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    command = ["sh", "-c", "cat >&2; exit 3"]
    words = b"a note\n[ERROR] no room\n"
    with pytest.raises(ServerFailed) as failed:
        make_data("Toy", INSTALLATION, command, data, lambda log: log.splitlines()[1:], str.upper, words)
    assert failed.value.message == "Toy could not make its data directory: [ERROR] no room"
    assert (failed.value.hint, failed.value.log) == ("A NOTE\n[ERROR] NO ROOM\n", words.decode())
    assert not data.exists()


def test_one_that_is_made_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(UserError, match="is not a data directory"):
        require_data(data)
    make_data("Toy", INSTALLATION, ["mkdir", str(data / "database")], data, lambda log: [], str)
    require_data(data)


def test_a_socket_may_stand_in_any_folder() -> None:
    assert url_of("mysql", Path("/run/a b/s.sock")) == "mysql://dyno@localhost/dyno?socket=/run/a%20b/s.sock"
