"""Which library is SQLite: the host's, one that is named, one that was fetched, and one that is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dbdyno.driver.passwords import query
from dbdyno.engines.sqlite import server
from dbdyno.engines.sqlite.settings import url
from dbdyno.errors import DynoError, EngineMissing, UserError
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Reference


@pytest.fixture
def host() -> Installation:
    try:
        return server.locate(Reference("sqlite"))
    except EngineMissing as missing:
        pytest.skip(f"sqlite cannot be had here: {missing.message}")


def library_of(path: Path) -> Path | None:
    return server.locate(Reference("sqlite", path=str(path))).library


def test_the_hosts_library_says_what_it_is(host: Installation, tmp_path: Path) -> None:
    # The driver finds the same one where a URL names none.
    assert query(url(tmp_path / "empty", None), "SELECT sqlite_version()") == [[host.version]]
    assert host.facts["build.THREADSAFE"] in ("1", "2")
    assert len(host.facts["source"]) > 60
    assert host.library is not None and host.library.is_file() and not host.library.is_symlink()


def test_a_library_is_named_by_its_path_or_its_folder(host: Installation, tmp_path: Path) -> None:
    own = tmp_path / "a build" / "lib" / "libsqlite3.so"
    own.parent.mkdir(parents=True)
    assert host.library is not None
    shutil.copy(host.library, own)
    for named in (own, own.parent, own.parent.parent):
        assert library_of(named) == own
    found = server.locate(Reference("sqlite", path=str(own)))
    assert (found.digest, found.version, found.prefix) == (host.digest, host.version, own.parent)
    linked = tmp_path / "libsqlite3.so.0"
    linked.symlink_to(own)
    assert library_of(linked) == own


def test_what_is_no_library_of_sqlites_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "libsqlite3.so.0").write_text("no library")
    with pytest.raises(UserError, match="cannot be used as SQLite") as refused:
        library_of(tmp_path)
    assert str(tmp_path / "libsqlite3.so.0") in refused.value.message
    assert "sqlite:/path/to/" in refused.value.hint
    with pytest.raises(EngineMissing, match=r"no libsqlite3\.so\.0 or libsqlite3\.so at"):
        library_of(tmp_path / "nothing")


def test_a_version_that_is_not_here_names_the_command_that_obtains_it() -> None:
    with pytest.raises(EngineMissing) as missing:
        server.locate(Reference("sqlite", "3.40.99"))
    assert "dyno engines fetch sqlite@3.40.99" in missing.value.hint


@pytest.mark.engine
def test_a_fetched_library_lies_in_its_own_prefix(homes_with_engines: Path) -> None:
    try:
        fetched = server.fetch("", "", lambda line: None)
    except DynoError as failed:
        pytest.skip(f"sqlite cannot be fetched here: {failed.message}")
    assert fetched.version.startswith("3.")
    assert fetched.library is not None and fetched.library.is_relative_to(fetched.prefix.resolve())
    assert fetched.origin in [offer.source for offer in server.offers()]


@pytest.mark.parametrize(
    ("object_file", "owned"),
    [("/usr/lib/libsqlite3.so.0.8.6", True), ("/opt/libsqlite3.so", True), ("/x/_driver.abi3.so", False)],
)
def test_functions_are_sqlites_by_the_library_that_holds_them(object_file: str, owned: bool) -> None:
    assert server.owns("btree.c", object_file) is owned
