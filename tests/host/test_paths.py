"""Dyno's folders follow the XDG variables, and its sockets stand in a private place."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.host import paths
from tests.needs import IS_ROOT


@pytest.mark.parametrize(
    ("variable", "folder"),
    [("XDG_DATA_HOME", paths.data), ("XDG_CACHE_HOME", paths.cache), ("XDG_STATE_HOME", paths.state)],
)
def test_a_folder_follows_its_variable(
    variable: str, folder: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, str(tmp_path / "chosen"))
    assert folder() == tmp_path / "chosen/dyno"
    assert (tmp_path / "chosen/dyno").is_dir()
    monkeypatch.setenv(variable, "a/relative/path")
    assert folder().is_relative_to(tmp_path / "home")


def test_programs_of_studies_are_none_of_the_packages_own_code(tmp_path: Path) -> None:
    for name in ("b.py", "a/c.py", "a/served.txt", "examples/studies/keystone/served.py", "a/examples/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in paths.code_files(tmp_path)]
    assert found == ["a/c.py", "a/examples/d.py", "b.py"]


def test_a_folder_that_cannot_be_made_names_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DynoError) as refused:
        paths.cache()
    assert "XDG_CACHE_HOME" in refused.value.hint


FOLDERS = [
    ("XDG_DATA_HOME", paths.data),
    ("XDG_CACHE_HOME", paths.cache),
    ("XDG_STATE_HOME", paths.state),
    ("XDG_RUNTIME_DIR", paths.runtime),
    (paths.HOST_VARIABLE, paths.host),
]


@pytest.mark.parametrize(("variable", "folder"), FOLDERS)
def test_a_file_in_a_folders_place_is_named(
    variable: str, folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "dyno"
        place.touch()
        monkeypatch.setenv(variable, str(place if variable == paths.HOST_VARIABLE else base))
        with pytest.raises(UserError) as refused:
            folder()
    assert refused.value.message == f"{place} is a file where dyno needs a folder"
    assert refused.value.hint == f"remove it, or set {variable} to a folder you can write"


@pytest.mark.parametrize(("variable", "folder"), FOLDERS)
def test_a_folder_that_may_not_be_written_is_named(
    variable: str, folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as base:
        place = Path(base) / "dyno"
        place.mkdir()
        monkeypatch.setenv(variable, str(place if variable == paths.HOST_VARIABLE else base))
        # Root may write everywhere, and tests run as root: the kernel's answer is given for it.
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != place)
        with pytest.raises(UserError) as refused:
            folder()
    assert refused.value.message == f"{place} may not be written by this user"
    assert variable in refused.value.hint


def test_the_journal_has_one_place_per_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(paths.HOST_VARIABLE, raising=False)
    monkeypatch.setattr(paths, "ROOTS_HOST", tmp_path / "var-lib")
    monkeypatch.setattr(paths, "USERS_HOSTS", tmp_path / "var-tmp")
    own = paths.host()
    assert own == (tmp_path / "var-lib" if IS_ROOT else tmp_path / f"var-tmp/dyno-{os.getuid()}")
    for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "other"))
    assert paths.host() == own
    (tmp_path / "var-tmp" / "dyno-4242").mkdir(parents=True)
    assert set(paths.hosts_of_all()) >= {tmp_path / "var-lib", tmp_path / "var-tmp" / "dyno-4242"}


def test_the_runtime_folder_is_private_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        folder = paths.runtime()
        assert folder == Path(base) / "dyno"
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_long_runtime_folder_gives_way_to_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * paths.LONGEST_RUNTIME_BYTES)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert len(os.fsencode(paths.runtime())) <= paths.LONGEST_RUNTIME_BYTES


@pytest.mark.skipif(not IS_ROOT, reason="only root can make folders of another user")
def test_the_runtime_folder_of_another_user_gives_way_to_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as base:
        os.chown(base, 65534, -1)
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        assert paths.runtime() == Path(tempfile.gettempdir()) / f"dyno-{os.getuid()}"
        assert list(Path(base).iterdir()) == []


def test_a_runtime_folder_open_to_others_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        (Path(base) / "dyno").mkdir(mode=0o755)
        assert paths.runtime().stat().st_mode & 0o077 == 0


def test_a_runtime_folder_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        (Path(base) / "dyno").symlink_to(tmp_path)
        with pytest.raises(DynoError, match="belongs to someone else"):
            paths.runtime()


def test_who_reads_a_file_meets_no_half_of_it(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text("the earlier one")
    with file.open() as reader, paths.made_whole(file) as making, paths.made_whole(file) as another:
        another.write_text("another's")
        making.write_text("the later")
        assert reader.read() == file.read_text() == "the earlier one"
    assert file.read_text() == "the later" and list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_made_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text("the earlier one")
    with pytest.raises(OSError, match="full"), paths.made_whole(file) as making:
        making.write_text("half")
        raise OSError(errno.ENOSPC, "the disk is full")
    assert file.read_text() == "the earlier one" and list(tmp_path.iterdir()) == [file]
