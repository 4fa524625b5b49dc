"""A server that Debian packages, where the host has one of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines.mariadb.server import SERVER as MARIADB
from dbdyno.engines.mysql.server import SERVER as MYSQL
from dbdyno.engines.postgresql.server import SERVER as POSTGRESQL
from dbdyno.errors import DynoError, EngineMissing, EngineUnobtainable
from dbdyno.obtain import debian
from dbdyno.study.nouns import Reference
from tests.obtain.path_cases import program

MARIADB_SAYS = "mysqld  Ver 10.6.18-MariaDB for Linux on x86_64 (MariaDB Server)"
MYSQL_SAYS = "mysqld  Ver 8.4.5 for Linux on x86_64 (MySQL Community Server - GPL)"


def installed(folder: Path, name: str, says: str) -> Path:
    """A program in the folder that says its version."""
    folder.mkdir(parents=True)
    return program(folder / name, f"#!/bin/sh\necho '{says}'\n")


def test_the_first_of_its_places_counts(homes: Path, tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("nothing", "first", "second")]
    server = replace(MARIADB, places=tuple(map(str, places)))
    with pytest.raises(EngineMissing, match="mariadb is not on this machine"):
        server.locate(Reference("mariadb"))
    binaries = [installed(place, "mariadbd", MARIADB_SAYS) for place in places[1:]]
    assert server.locate(Reference("mariadb")).command == (str(binaries[0]),)
    here = [offer.source for offer in server.offers() if offer.present]
    assert here == [str(binary) for binary in binaries]


def test_an_installation_that_does_not_run_hides_no_other(homes: Path, tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("broken", "whole")]
    server = replace(MARIADB, places=tuple(map(str, places)))
    places[0].mkdir()
    program(places[0] / "mariadbd", "no program\n")
    binary = installed(places[1], "mariadbd", MARIADB_SAYS)
    assert server.locate(Reference("mariadb")).origin == str(binary)
    assert [offer.source for offer in server.offers() if offer.present] == [str(binary)]


def test_the_highest_version_counts_wherever_it_lies(homes: Path, tmp_path: Path) -> None:
    binary = installed(tmp_path / "host", "mariadbd", MARIADB_SAYS.replace("10.6.18", "10.11.6"))
    server = replace(MARIADB, places=(str(binary.parent),))
    libc = "usr/lib/ld-linux-x86-64.so.2"
    fetched(homes, "11.8.6", libc, fetched_unix_s=1)
    fetched(homes, "11.8.10", libc, fetched_unix_s=2)
    fetched(homes, "10.11.6", libc, fetched_unix_s=3)
    assert [one.version for one in server.here()] == ["11.8.10", "11.8.6", "10.11.6", "10.11.6"]
    assert server.locate(Reference("mariadb")).version == "11.8.10"
    # Of one version the copy counts that was fetched, whose libraries are known.
    assert str(binary) not in server.locate(Reference("mariadb", "10.11")).command
    fetched(homes, "9.9.9", libc, fetched_unix_s=4)
    assert server.locate(Reference("mariadb")).version == "11.8.10"
    installed(tmp_path / "new", "mariadbd", MARIADB_SAYS.replace("10.6.18", "12.1.2"))
    newer = replace(MARIADB, places=(str(tmp_path / "new"),))
    assert newer.locate(Reference("mariadb")).version == "12.1.2"


def fetched(homes: Path, version: str, loader: str, fetched_unix_s: int = 1) -> Path:
    """A copy whose C library, where it has one, is a script that says a version."""
    copy = homes / "cache/dyno/engines" / f"mariadb-{version}-0"
    (copy / loader).parent.mkdir(parents=True)
    program(copy / loader, f"#!/bin/sh\necho 'mariadbd  Ver {version}-MariaDB'\n")
    about = {"engine": "mariadb", "version": version, "suite": "bookworm", "digest": "0"}
    (copy / debian.MANIFEST).write_text(json.dumps({**about, "fetched_unix_s": fetched_unix_s}))
    return copy


@pytest.mark.parametrize("folder", ["usr/lib", "lib", "lib64"])
def test_the_c_library_of_a_copy_is_found_where_its_suite_has_it(homes: Path, folder: str) -> None:
    copy = fetched(homes, "10.11.6", f"{folder}/ld-linux-x86-64.so.2")
    for libraries in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"):
        (copy / libraries).mkdir(parents=True)
    server = replace(MARIADB, places=())
    assert server.locate(Reference("mariadb", "10.11")).command == (
        *(str(copy / folder / "ld-linux-x86-64.so.2"), "--inhibit-cache", "--library-path"),
        f"{copy / 'usr/lib/x86_64-linux-gnu'}:{copy / 'lib/x86_64-linux-gnu'}",
        str(copy / MARIADB.recipe.binary),
    )
    assert [offer.version for offer in server.offers() if offer.present] == ["10.11.6"]


def test_a_copy_that_does_not_run_is_told_and_not_here(homes: Path) -> None:
    copy = fetched(homes, "10.11.6", "etc/nothing")
    server = replace(MARIADB, places=())
    [broken] = [offer for offer in server.offers() if offer.version == "10.11.6"]
    assert not broken.present
    assert f"no dynamic loader below {copy}" in broken.source
    assert f"dyno cache free {copy.name}" in broken.source
    with pytest.raises(EngineMissing, match="is not on this machine"):
        server.locate(Reference("mariadb", "10.11"))
    with pytest.raises(DynoError, match="no dynamic loader"):
        server.running(debian.fetched("mariadb")[0])


def test_a_version_that_nobody_has_is_refused_with_those_there_are(homes: Path, tmp_path: Path) -> None:
    binary = installed(tmp_path / "15.3/bin", "postgres", "postgres (PostgreSQL) 15.3")
    program(binary.with_name("initdb"), "")
    server = replace(POSTGRESQL, places=(f"{str(tmp_path)[1:]}/*/bin",))
    with pytest.raises(EngineUnobtainable, match="cannot be fetched") as refused:
        server.locate(Reference("postgresql", "9.6"))
    assert "postgresql@15.3, postgresql@17 (`dyno engines fetch`)" in refused.value.hint, refused.value.hint
    with pytest.raises(EngineMissing) as missing:
        server.locate(Reference("postgresql", "17.2"))
    assert not isinstance(missing.value, EngineUnobtainable)
    assert missing.value.hint == "`dyno engines fetch postgresql@17.2` obtains it"


def test_a_mariadb_in_mysqls_places_is_passed_over(homes: Path, tmp_path: Path) -> None:
    server = replace(MYSQL, places=(str(tmp_path / "a"), str(tmp_path / "b")))
    installed(tmp_path / "a", "mysqld", MARIADB_SAYS)
    binary = installed(tmp_path / "b", "mysqld", MYSQL_SAYS)
    assert server.locate(Reference("mysql")).origin == str(binary)


def test_the_newest_postgresql_with_its_programs_counts(homes: Path, tmp_path: Path) -> None:
    server = replace(POSTGRESQL, places=(f"{str(tmp_path)[1:]}/*/bin",))
    for version in ("9.6", "16.4", "17.2"):
        binary = installed(tmp_path / version / "bin", "postgres", f"postgres (PostgreSQL) {version}")
        if version != "17.2":
            program(binary.with_name("initdb"), "")
    assert [one.version for one in server.here()] == ["16.4", "9.6"]
    assert server.locate(Reference("postgresql", "9")).version == "9.6"
