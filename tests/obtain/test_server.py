"""A server that Debian packages, where the host has one of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines.mariadb.obtaining import SERVER as MARIADB
from dbdyno.engines.mysql.obtaining import SERVER as MYSQL
from dbdyno.engines.postgresql.obtaining import SERVER as POSTGRESQL
from dbdyno.errors import EngineMissing
from dbdyno.study.reference import Reference
from tests.obtain.test_path import program

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
