"""Included files are read in their place, as a server reads them, and what cannot be read is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.engines.configuration import CHARACTERS_MOST, DEPTH_MOST, read_configuration
from dbdyno.frozen import Configuration
from tests.needs import IS_ROOT


def read(folder: Path, engine: str, **files: str) -> Configuration:
    """What is read of `main`, the first file; `__` in a name stands for a folder, a last `_` for a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return read_configuration(registry.engine(engine), None, "main.cnf", folder)


def reasons(found: Configuration) -> dict[str, str]:
    return {f"{one.file or found.path}:{one.line}": one.reason for one in found.not_taken}


def test_an_included_file_counts_where_it_stands(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "mariadb",
        main_cnf="[mysqld]\nmax_connections=1\nback_log=1\n!include other.cnf\nback_log=3\n",
        other_cnf="[client]\nback_log=9\n[mysqld]\nmax_connections=2\nback_log=2\nport=1\n",
    )
    assert found.settings == {"config.max_connections": "2", "config.back_log": "3"}
    assert list(reasons(found)) == ["other.cnf:2", "other.cnf:6"]
    assert [(one.path, "back_log=2" in one.text) for one in found.included] == [("other.cnf", True)]


def test_a_group_goes_on_after_an_included_file(tmp_path: Path) -> None:
    found = read(
        tmp_path, "mariadb", main_cnf="[mysqld]\n!include other.cnf\nback_log=3\n", other_cnf="[client]\n"
    )
    assert found.settings == {"config.back_log": "3"}


@pytest.mark.parametrize(
    ("engine", "main", "ending"),
    [("mariadb", "!includedir conf.d", "cnf"), ("postgresql", "include_dir 'conf.d'", "conf")],
)
def test_the_files_of_a_folder_are_read_by_their_names(
    tmp_path: Path, engine: str, main: str, ending: str
) -> None:
    group = "[mysqld]\n" if engine == "mariadb" else ""
    folder = tmp_path / "conf.d"
    folder.mkdir()
    for name, value in {f"b.{ending}": 2, f"a.{ending}": 1, "c.txt": 3, f".d.{ending}": 4}.items():
        (folder / name).write_text(f"{group}max_connections = {value}\n")
    found = read(tmp_path, engine, main_cnf=f"{group}{main}\n")
    assert found.settings == {"config.max_connections": "2"}
    assert [one.path for one in found.included] == [f"conf.d/a.{ending}", f"conf.d/b.{ending}"]


@pytest.mark.parametrize(
    ("engine", "line"),
    [
        ("mariadb", "!include gone.cnf"),
        ("mysql", "!includedir gone"),
        ("postgresql", "include 'gone.conf'"),
        ("postgresql", "include_if_exists = gone.conf"),
        ("postgresql", "include_dir gone"),
        ("firebird", "include gone.conf"),
    ],
)
def test_a_file_that_is_not_there_is_named_with_its_line(tmp_path: Path, engine: str, line: str) -> None:
    found = read(tmp_path, engine, main_cnf=f"# a comment\n{line}\n")
    ((place, why),) = reasons(found).items()
    assert place == "main.cnf:2" and f"{tmp_path / 'gone'}" in why and "not on this machine" in why
    assert found.included == ()


def test_firebird_includes_a_file_as_well(tmp_path: Path) -> None:
    found = read(tmp_path, "firebird", main_cnf="include other.cnf\n", other_cnf="LockMemSize = 2M\n")
    assert found.settings == {"config.LockMemSize": "2M"}


def test_a_path_counts_from_the_file_that_holds_it(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "postgresql",
        main_cnf="include 'sub/a.conf'\n",
        sub__a_conf="include b.conf\nwork_mem = 1MB\n",
        sub__b_conf="jit = off\nlc_time = 'C'\n",
    )
    assert found.settings == {"config.jit": "off", "config.work_mem": "1MB"}
    assert list(reasons(found)) == ["sub/b.conf:2"]


def test_a_circle_and_a_long_way_end(tmp_path: Path) -> None:
    found = read(tmp_path, "mariadb", main_cnf="!include other.cnf\n", other_cnf="!include main.cnf\n")
    assert "circle" in reasons(found)["other.cnf:1"]
    chain = {f"f{number}_cnf": f"!include f{number + 1}.cnf\n" for number in range(DEPTH_MOST + 3)}
    long = read(tmp_path, "mariadb", main_cnf="!include f0.cnf\n", **chain)
    assert len(long.included) == DEPTH_MOST
    ((place, why),) = reasons(long).items()
    assert place == f"f{DEPTH_MOST - 1}.cnf:1" and "includes in a row" in why


def test_what_cannot_be_read_does_not_hide_the_next_file(tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "a.cnf").write_bytes(b"\xff\xfe")
    (folder / "b.cnf").write_text("[mysqld]\nback_log=2\n")
    found = read(tmp_path, "mariadb", main_cnf="!includedir conf.d\n")
    assert found.settings == {"config.back_log": "2"}
    assert reasons(found) == {"main.cnf:1": "a.cnf is not a text in UTF-8"}


@pytest.mark.parametrize("line", ["!include round.cnf", "!include pipe.cnf", "!include large.cnf",
                                  "!include /dev/zero", "!include ~nobody-has-this-name/a.cnf",
                                  "!include a\0.cnf", "!includedir round.cnf"])  # fmt: skip
def test_what_does_not_end_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "round.cnf").symlink_to("round.cnf")
    os.mkfifo(tmp_path / "pipe.cnf")
    (tmp_path / "large.cnf").write_text("#" * (1 + CHARACTERS_MOST))
    found = read(tmp_path, "mariadb", main_cnf=f"{line}\n[mysqld]\nback_log=2\n")
    ((place, why),) = reasons(found).items()
    assert place == "main.cnf:1" and "cannot be read: " in why
    assert found.settings == {"config.back_log": "2"}


@pytest.mark.parametrize("name", ["round.cnf", "pipe.cnf"])
def test_the_file_itself_must_end_as_well(tmp_path: Path, name: str) -> None:
    (tmp_path / "round.cnf").symlink_to("round.cnf")
    os.mkfifo(tmp_path / "pipe.cnf")
    with pytest.raises(OSError, match=r"regular file|[Ll]oop|symbolic links"):
        read_configuration(registry.engine("mariadb"), None, name, tmp_path)


@pytest.mark.skipif(IS_ROOT, reason="root may read every file")
def test_a_file_that_this_user_may_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.cnf").touch(mode=0)
    found = read(tmp_path, "mariadb", main_cnf="!include other.cnf\n")
    assert "cannot be read: Permission denied" in reasons(found)["main.cnf:1"]


def test_secrets_of_included_files_are_not_kept(tmp_path: Path) -> None:
    found = read(
        tmp_path, "mariadb", main_cnf="!include other.cnf\n", other_cnf="[mysqld]\npassword=hunter2\n"
    )
    assert "hunter2" not in found.model_dump_json()
