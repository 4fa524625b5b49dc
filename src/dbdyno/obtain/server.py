"""A server that Debian packages: named by its path, installed on the host, or fetched.

A server's own client programs: beside the server, fetched, or on the host.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import DynoError, EngineMissing, EngineUnobtainable, UserError
from dbdyno.host.writers import require_own
from dbdyno.obtain import brought, debian, path
from dbdyno.obtain.installation import Installation, Offer, covers, first_covering, highest_first, may_hold
from dbdyno.study.nouns import Reference

ARGV0 = "--argv0"
"""The loader's option with the name by which a program is called."""
IN_IMAGES = (
    "usr/sbin", "usr/local/sbin", "usr/local/bin", "usr/bin", "usr/local/*/bin", "opt/*/bin",
    "usr/lib/postgresql/*/bin", "usr/pgsql-*/bin",
)  # fmt: skip
"""Where images have their servers."""


def program(installation: Installation, recipe: debian.DebianRecipe, *names: str) -> list[str]:
    """The command of the first of these programs that is here: beside the server or in the `bin` of its
    folder, then among the packages of `recipe`, then on the host. Raises EngineMissing with what obtains
    it."""
    found = next(programs(installation, recipe, *names), None)
    if found is None:
        raise EngineMissing(
            f"{names[0]} is not on this machine, and a dump is loaded with it",
            f"`dyno engines fetch {installation.engine}` obtains it",
        )
    return found


def client_program(obtaining: object, installation: Installation, name: str) -> list[str]:
    """The command of any program that works on a server, from the same places; one with a slash is a path.
    Raises EngineMissing."""
    if "/" in name:
        if not os.access(name, os.X_OK):
            raise EngineMissing(f"{name} is no program of this machine", "name its whole path")
        return [name]
    found = (
        programs(installation, obtaining.client, name)
        if isinstance(obtaining, PackagedServer)
        else _beside(installation, name)
    )
    command = next(found, None) or ([on_host] if (on_host := shutil.which(name)) else None)
    if command is None:
        hint = f"install it, or name its path; beside {installation.engine} there is none"
        raise EngineMissing(f"{name} is not on this machine, and a command beside the load asks for it", hint)
    return command


def _beside(installation: Installation, name: str) -> Iterator[list[str]]:
    """The program beside the server, or in the `bin` of its folder."""
    for server in map(Path, installation.command[-1:]):
        for beside in (server.with_name(name), server.parent.parent / "bin" / name):
            if beside.resolve() != server.resolve() and os.access(beside, os.X_OK):
                require_own(beside)
                yield _run_like(installation, beside)


def programs(installation: Installation, recipe: debian.DebianRecipe, *names: str) -> Iterator[list[str]]:
    """The commands of all that are here, in that order."""
    for name in names:
        yield from _beside(installation, name)
    for copy in debian.fetched(recipe.engine):
        for name in names:
            found = (copy.prefix / recipe.binary).with_name(name)
            if found.is_file():
                yield [*debian.loader(copy.prefix), ARGV0, str(found), str(found)]
    for name in names:
        if (on_host := shutil.which(name)) is not None:
            require_own(Path(on_host))
            yield [on_host]


def fronts(folder: Path, commands: Mapping[str, Sequence[str]]) -> Path:
    """A new folder of scripts, each of which becomes the command of its name. A program that looks for others
    beside itself finds these scripts, whatever loader the programs need."""
    folder.mkdir()
    for name, command in commands.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {_by_own_name(command)} "$@"\n')
        script.chmod(0o700)
    return folder


def _by_own_name(command: Sequence[str]) -> str:
    """A command for a shell. A loader hands the script's name on, where the program looks for others."""
    if ARGV0 not in command:
        return shlex.join(command)
    place = command.index(ARGV0) + 1
    return f'{shlex.join(command[:place])} "$0" {shlex.join(command[place + 1 :])}'


def _run_like(installation: Installation, program: Path) -> list[str]:
    """A program of an unpacked copy runs on the C library that came with it, as its server does."""
    if len(installation.command) == 1:
        return [str(program)]
    return [*debian.loader(installation.prefix), ARGV0, str(program), str(program)]


@dataclass(frozen=True)
class PackagedServer:
    """Where one engine's server comes from.

    `version` is the pattern that finds the version in what `--version` says, and nothing where that is
    another program. `names` are those of the binary, the usual one first; `places` are where the host has it.
    `client` are the packages with the programs that load a dump, and those of `beside` are fetched as well.
    Registries call its `image` so. No major version before the `oldest` one can be started.
    """

    recipe: debian.DebianRecipe
    title: str
    version: str
    names: tuple[str, ...]
    places: tuple[str, ...]
    client: debian.DebianRecipe
    image: str
    beside: tuple[debian.DebianRecipe, ...] = ()
    oldest: int = 0

    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            return self.at(reference.place)
        return first_covering(self.here(), reference, self.recipe.suites)

    def at(self, place: Path) -> Installation:
        """The one at a path: a binary, the folder that holds it, a vendor's tarball, or an image. Raises
        UserError for one that is too old."""
        if brought.is_brought(place):
            found = self.of_brought(brought.unpacked(place), str(place))
        else:
            found = self.installed(path.binary(str(place), self.names))
        if int(found.version.partition(".")[0]) < self.oldest:
            raise UserError(
                f"{place} is {self.title} {found.version}, and Dyno starts {self.oldest} and later ones",
                "an older one makes its data in another way: name a later one",
            )
        return found

    def of_brought(self, found: brought.Unpacked, file: str) -> Installation:
        """The one in a file that a user brought."""
        command = self._of_image(found) if found.image else (str(path.binary(str(found.folder), self.names)),)
        binary = Path(command[-1])
        require_own(binary)

        def ask() -> brought.Said:
            return brought.Said(
                path.version(command, self.version, self.title), path.digest_of_binary(binary)
            )

        said = brought.asked_once(found, self.recipe.engine, binary, ask)
        return Installation(
            engine=self.recipe.engine,
            version=said.version,
            origin=f"{file}, {found.words}",
            prefix=found.folder if found.image else binary.parent.parent,
            command=command,
            digest=said.digest,
        )

    def _of_image(self, image: brought.Unpacked) -> tuple[str, ...]:
        """The command of an image's server, which runs on the image's own C library."""
        named = ((place, name) for place in IN_IMAGES for name in self.names)
        found = (one for place, name in named for one in image.folder.glob(f"{place}/{name}"))
        binaries = [one for one in found if one.is_file()]
        if not binaries:
            raise EngineUnobtainable(
                f"the image {image.image} holds no {self.title} server",
                f"an image of {self.title} has {' or '.join(self.names)} in {', '.join(IN_IMAGES)}",
            )
        loader = debian.loader(image.folder, brought.library_folders(image.folder))
        return self.by_loader(loader, binaries[0])

    def by_loader(self, loader: tuple[str, ...], binary: Path) -> tuple[str, ...]:
        """The command of a server that does not run on the host's C library."""
        return (*loader, str(binary))

    def offers(self) -> list[Offer]:
        """What runs is here. What lies on the disk and does not run is told with the reason."""
        copies = [self._offer_of(copy) for copy in debian.fetched(self.recipe.engine)]
        added = [one.offer for one in self.added()]
        others = (
            one
            for one in debian.offers(self.recipe)
            if not any(covers(one.version, each.version) for each in added)
        )
        return [*copies, *added, *(one.offer for one in self.of_host()), *others]

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        """Raises DynoError as well where the copy, an old one or a new one, does not run."""
        if not any(may_hold(version, held) for held in self.recipe.suites):
            raise EngineUnobtainable(
                f"{self.recipe.engine}@{version} cannot be fetched: no Debian suite that Dyno knows has it",
                f"{self.bringing(version)}. `dyno engines` lists the others",
            )
        copy = debian.fetch(self.recipe, version, mirror=mirror, tell=tell)
        try:
            fetched = self.running(copy)
        except DynoError as failed:
            raise DynoError(
                f"{self.title} {copy.version} is in {copy.prefix} and does not run: {failed.message}",
                f"`dyno cache free {copy.prefix.name}`, and fetch it again",
            ) from None
        for recipe in (self.client, *self.beside):
            debian.fetch(recipe, version, mirror=mirror, tell=tell)
        return fetched

    def bringing(self, version: str) -> str:
        """How a version comes here that cannot be fetched."""
        return (
            f"bring the vendor's tarball of {self.title} {version} for Linux, or its image (`docker save"
            f" {self.image}:{version} --output FILE.tar`), then `dyno engines add FILE`"
        )

    def here(self) -> Iterable[Installation]:
        """What was fetched and what the host has, the highest version first. Of one version the copy comes
        first that was fetched last, and the host's comes last."""
        return highest_first([*self.copies(), *self.of_host()])

    def copies(self) -> Iterator[Installation]:
        """Those that were fetched and are whole."""
        for copy in debian.fetched(self.recipe.engine):
            with suppress(DynoError):
                yield self.unpacked(copy)
        yield from self.added()

    def added(self) -> Iterator[Installation]:
        """Those that a user brought, and `dyno engines add` took up."""
        for found, file in brought.taken_up(self.recipe.engine):
            with suppress(DynoError):
                yield self.of_brought(found, file)

    def of_host(self) -> Iterator[Installation]:
        """The host's own, without those that do not run."""
        for binary in self.on_host():
            with suppress(DynoError):
                yield self.installed(binary)

    def running(self, copy: debian.Fetched) -> Installation:
        """A copy that was fetched, as far as it runs. Raises DynoError with the reason where it does not."""
        found = self.unpacked(copy)
        path.version(found.command, self.version, self.title)
        return found

    def _offer_of(self, copy: debian.Fetched) -> Offer:
        try:
            return self.running(copy).offer
        except DynoError as failed:
            source = (
                f"does not run: {failed.message}; `dyno cache free {copy.prefix.name}`, and fetch it again"
            )
            return Offer(self.recipe.engine, copy.version, source, present=False)

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
