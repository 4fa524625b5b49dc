"""A server that Debian packages: named by its path, installed on the host, or fetched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dbdyno.obtain import debian, path
from dbdyno.obtain.installation import Installation, Offer, first_covering
from dbdyno.study.reference import Reference


@dataclass(frozen=True)
class PackagedServer:
    """Where one engine's server comes from.

    `version` is the pattern that finds the version in what `--version` says, and nothing where that is
    another program. `names` are those of the binary, the usual one first; `places` are where the host has it.
    """

    recipe: debian.Recipe
    title: str
    version: str
    names: tuple[str, ...]
    places: tuple[str, ...]

    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            return self.installed(path.binary(reference.path, self.names))
        return first_covering(self.here(), reference)

    def offers(self) -> list[Offer]:
        return [one.offer for one in self.here()] + debian.offers(self.recipe)

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        return self.unpacked(debian.fetch(self.recipe, version, mirror=mirror, tell=tell))

    def here(self) -> Iterable[Installation]:
        """What was fetched, the newest first, then what the host has."""
        yield from map(self.unpacked, debian.fetched(self.recipe.engine))
        yield from map(self.installed, self.on_host())

    def on_host(self) -> list[Path]:
        """The binaries of the host's own installations."""
        found = [Path(place) / self.names[0] for place in self.places]
        return [binary for binary in found if os.access(binary, os.X_OK)]

    def unpacked(self, copy: debian.Fetched) -> Installation:
        """A copy that was fetched."""
        return copy.installation(str(copy.prefix / self.recipe.binary))

    def installed(self, binary: Path) -> Installation:
        """The one that a binary of the host stands in."""
        return path.installation(binary, self.recipe.engine, self.version, self.title)
