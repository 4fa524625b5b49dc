"""An installed server, named by its path: what can be wrong with it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dbdyno.engines.engine import Engine
from dbdyno.engines.registry import ENGINES
from dbdyno.errors import EngineMissing, UserError
from dbdyno.obtain import path
from dbdyno.study.nouns import Reference
from tests.obtain.path_cases import program

SERVERS = [ENGINES["mariadb"], ENGINES["mysql"], ENGINES["postgresql"]]


@pytest.fixture(params=SERVERS, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


def locate(engine: Engine, path: Path) -> None:
    engine.obtaining.locate(Reference(engine.name, path=str(path)))


def test_a_path_that_leads_nowhere(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="there is no server at") as missing:
        locate(engine, tmp_path / "nothing")
    assert missing.value.exit_code == 2
    assert missing.value.hint


def test_a_folder_without_a_server(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="in "):
        locate(engine, tmp_path)


def test_a_file_that_is_not_executable(engine: Engine, tmp_path: Path) -> None:
    path = program(tmp_path / "server", "#!/bin/sh\n")
    path.chmod(stat.S_IRUSR)
    with pytest.raises(UserError, match="not executable") as refused:
        locate(engine, path)
    assert "chmod +x" in refused.value.hint


def test_a_device_is_no_program(engine: Engine) -> None:
    with pytest.raises(UserError, match="not a program"):
        locate(engine, Path(os.devnull))


def test_a_program_that_writes_a_profile_when_it_ends_leaves_none(tmp_path: Path) -> None:
    asked = program(tmp_path / "server", '#!/bin/sh\necho "$LLVM_PROFILE_FILE"\n')
    assert path.ask((str(asked),)).strip() == os.devnull


def test_a_program_that_is_another_one(engine: Engine, tmp_path: Path) -> None:
    path = program(tmp_path / "server", "#!/bin/sh\necho 'frobnicate 1.0'\n")
    with pytest.raises(UserError, match=r"is not a .* server: .*frobnicate 1\.0"):
        locate(engine, path)


def test_a_file_that_the_system_cannot_run(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "server"
    path.write_bytes(b"\x7fELF not really")
    path.chmod(0o755)
    with pytest.raises(UserError, match="cannot be run"):
        locate(engine, path)


def test_a_server_says_its_version(engine: Engine, tmp_path: Path) -> None:
    words = {
        "mariadb": "mariadbd  Ver 10.6.18-MariaDB-log for Linux on x86_64 (MariaDB Server)",
        "mysql": "mysqld  Ver 8.4.5 for Linux on x86_64 (MySQL Community Server - GPL)",
        "postgresql": "postgres (PostgreSQL) 16.4 (Debian 16.4-1)",
    }
    path = program(tmp_path / "server", f"#!/bin/sh\necho '{words[engine.name]}'\n")
    installation = engine.obtaining.locate(Reference(engine.name, path=str(path)))
    assert installation.version in ("10.6.18", "8.4.5", "16.4")
    assert installation.origin == str(path)
    assert installation.command == (str(path),)


def test_a_mariadb_by_the_name_of_mysqld_is_no_mysql(tmp_path: Path) -> None:
    path = program(tmp_path / "mysqld", "#!/bin/sh\necho 'mysqld  Ver 10.6.18-MariaDB for Linux'\n")
    with pytest.raises(UserError, match="is not a MySQL server"):
        locate(ENGINES["mysql"], path)
