"""An engine's packages of other architectures: fetched, found, and run here under an emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import DynoError, EngineMissing, UserError
from dbdyno.obtain import debian, path
from dbdyno.obtain.architecture import ARCHITECTURES, architecture, emulator
from dbdyno.obtain.installation import Installation, Offer, covers, may_hold

C_LIBRARY = "libc6"
"""Its version stands beside that of the engine's own package, because the engine runs on it."""


@dataclass(frozen=True)
class Platforms:
    """Where one engine's programs of other architectures come from. Each of the `recipes` holds other
    versions of it. `unpacked` makes an installation of a copy, and `version` is the pattern that finds the
    version in what its program says to `--version`."""

    engine: str
    title: str
    version: str
    recipes: tuple[debian.Recipe, ...]
    unpacked: Callable[[debian.Recipe, debian.Fetched], Installation]

    def recipe(self, version: str) -> debian.Recipe:
        """The one that holds a version; the first for an empty one. Raises UserError where none does."""
        for recipe in self.recipes:
            if any(may_hold(version, held) for held in recipe.suites):
                return recipe
        have = ", ".join(f"{self.engine}@{held}" for recipe in self.recipes for held in recipe.suites)
        raise UserError(
            f"{self.engine}@{version} is in no Debian suite of other architectures", f"there are: {have}"
        )

    def fetch(self, version: str, name: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        """Obtains the engine of an architecture, and shows that it runs. Raises UserError for an architecture
        without an emulator before anything is fetched, and DynoError where the fetch fails or the program
        does not run."""
        emulator(architecture(name).name)
        recipe = self.recipe(version)
        copy = debian.fetch(recipe.of(name), version, mirror=mirror, tell=tell)
        found = self._installed(recipe, copy)
        try:
            path.version(found.command, self.version, self.title)
        except DynoError as failed:
            raise DynoError(
                f"{self.title} {copy.version} of {name} in {copy.prefix} does not run: {failed.message}",
                f"`dyno cache free {copy.prefix.name}`, and fetch it again",
            ) from None
        return found

    def locate(self, version: str, name: str) -> Installation:
        """The newest copy of the series that a version is of. Raises EngineMissing with the command that
        obtains it, and UserError where no suite holds it."""
        recipe = self.recipe(version)
        series = next(held for held in recipe.suites if may_hold(version, held))
        for copy in debian.fetched(recipe.of(architecture(name).name).shelved):
            if covers(series, copy.version):
                return self._installed(recipe, copy)
        raise EngineMissing(
            f"{self.engine}@{series} of {name} is not on this machine",
            f"`dyno engines fetch {self.engine}@{series} --platform {name}` obtains it",
        )

    def of_build(self, program: Path, root: debian.Fetched) -> Installation:
        """What was built for an architecture, run on the root that it was built against. Raises UserError
        where it does not run."""
        copy = replace(root, engine=self.engine)
        found = self.unpacked(replace(self.recipes[0], binary=str(program)), copy)
        return replace(
            found,
            version=path.version(found.command, self.version, self.title),
            digest=path.digest(Path(found.command[-1])),
            architecture=root.architecture,
            facts={"packages": f"{C_LIBRARY} {root.packages.get(C_LIBRARY, '')}"},
        )

    def offers(self) -> Iterator[Offer]:
        """The copies that are here."""
        for name in ARCHITECTURES:
            for copy in debian.fetched(self.recipes[0].of(name).shelved):
                yield Offer(f"{self.engine} of {name}", copy.version, copy.origin, present=True)

    def _installed(self, recipe: debian.Recipe, copy: debian.Fetched) -> Installation:
        known = copy.packages
        told = [f"{name} {known[name]}" for name in (recipe.server, C_LIBRARY) if name in known]
        found = self.unpacked(recipe, copy)
        return replace(found, architecture=copy.architecture, facts={"packages": ", ".join(told)})
