"""The libraries that Firebird's wheel expects of its host: the host's own, or copies that were fetched."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.host import libraries
from dbdyno.obtain import debian

FOLDER = f"usr/lib/{os.uname().machine}-linux-gnu"
OF_THE_HOST = ("libc6", "libgcc-s1", "libstdc++6")


@dataclass(frozen=True)
class Beside:
    """Libraries that come together in one package of Debian. `on_host` is a pattern of the file that tells
    whether a host has them, in whatever version; `files` are those of the package. Where an engine asks for
    the first one by an older name, it is linked `under` that."""

    name: str
    on_host: str
    files: tuple[str, ...]
    recipe: debian.Recipe
    under: str = ""

    @property
    def here(self) -> bool:
        return libraries.found(self.on_host) or self.copy is not None

    @property
    def copy(self) -> Path | None:
        """The folder of the copy that was fetched; None without one."""
        folders = (copy.prefix / FOLDER for copy in debian.fetched(self.recipe.engine))
        return next((each for each in folders if all((each / file).is_file() for file in self.files)), None)

    @property
    def linked(self) -> dict[str, Path]:
        """The files that a server's own folder has to lead to, by their names in it: none where the host has
        them."""
        copy = None if libraries.found(self.on_host) else self.copy
        if copy is None:
            return {}
        return {self.under or file: copy / file for file in self.files}


def _beside(name: str, package: str, version: str, on_host: str, files: tuple[str, ...]) -> Beside:
    # The oldest suite that has it: the library then runs on the C library of every newer host.
    recipe = debian.Recipe(
        engine=name, packages=(package,), server=package, binary=f"{FOLDER}/{files[0]}",
        suites={version: "bookworm"}, without=OF_THE_HOST,
    )  # fmt: skip
    return Beside(name, on_host, files, recipe)


TOMMATH = _beside("libtommath", "libtommath1", "1.2", "libtommath.so.1", ("libtommath.so.1",))
# Firebird holds the version in a file's name against the one that the library tells.
_NAMES = tuple(
    f"lib{part}.so.{version}" for part in ("icui18n", "icuuc", "icudata") for version in ("72.1", "72")
)
OLD_TOMMATH = replace(TOMMATH, on_host="libtommath.so.0", under="libtommath.so.0")
"""For Firebird 4, which asks for the name of the release before. No function that it calls is another one
in this release."""
ICU = _beside("libicu", "libicu72", "72.1", "libicui18n.so.[1-9]*", _NAMES)
LIBRARIES = (TOMMATH, ICU)


def libraries_of(version: str) -> tuple[Beside, ...]:
    """Those that a version of Firebird expects."""
    return (OLD_TOMMATH, ICU) if version.startswith("4.") else LIBRARIES


def missing(version: str) -> tuple[Beside, ...]:
    """Those of a version that neither the host nor Dyno's cache has."""
    return tuple(each for each in libraries_of(version) if not each.here)
