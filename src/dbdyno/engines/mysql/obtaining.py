"""Where MySQL comes from: a path, Debian's packages, or an installation on the host."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from dbdyno.obtain import debian, path
from dbdyno.obtain.installation import Installation, Offer, first_covering
from dbdyno.study.reference import Reference

RECIPE = debian.Recipe(
    engine="mysql",
    packages=("mysql-server-core",),
    server="mysql-server-core",
    binary="usr/sbin/mysqld",
    # No release of Debian has it, and sid moves on: only the major version is sure.
    suites={"9": "sid"},
)
VERSION = r"Ver (\d+\.\d+\.\d+)(?!\S*MariaDB)"
NAMES = ("mysqld",)
PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/mysql/bin")


def locate(reference: Reference) -> Installation:
    if reference.path:
        return _installed(path.binary(reference.path, NAMES))
    return first_covering(_here(), reference)


def offers() -> list[Offer]:
    return [one.offer for one in _here()] + debian.offers(RECIPE)


def fetch(version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
    return _unpacked(debian.fetch(RECIPE, version, mirror=mirror, tell=tell))


def _here() -> Iterator[Installation]:
    """What was fetched, the newest first, then what the host has."""
    yield from map(_unpacked, debian.fetched(RECIPE.engine))
    yield from map(_installed, _binaries_here())


def _unpacked(copy: debian.Fetched) -> Installation:
    return copy.installation(str(copy.prefix / RECIPE.binary))


def _installed(binary: Path) -> Installation:
    return path.installation(binary, RECIPE.engine, VERSION, "MySQL")


def _binaries_here() -> list[Path]:
    """The host's own; a MariaDB may bear the name as well."""
    found = [Path(place) / "mysqld" for place in PLACES]
    programs = [binary for binary in found if os.access(binary, os.X_OK)]
    return [one for one in programs if re.search(VERSION, path.ask((str(one),), "--version"))]
