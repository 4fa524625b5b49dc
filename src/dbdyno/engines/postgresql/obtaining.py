"""Where PostgreSQL comes from: a path, an installation on the host, or Debian's packages."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import PackagedServer


class _PostgreSQL(PackagedServer):
    def on_host(self) -> list[Path]:
        found = [binary for place in self.places for binary in Path("/").glob(f"{place}/{self.names[0]}")]
        # A link or a script elsewhere leads to a binary that has been found already, or that has no initdb
        # beside it.
        binaries = {binary.resolve() for binary in found if os.access(binary, os.X_OK)}
        return sorted(binary for binary in binaries if (binary.parent / "initdb").is_file())

    def unpacked(self, copy: debian.Fetched) -> Installation:
        binary = copy.prefix / self.recipe.binary
        _front(copy.prefix, binary)
        return copy.installation("--argv0", str(binary), str(_behind(binary)))


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
        *("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin"),
        *("usr/local/pgsql/bin", "usr/local/bin", "usr/bin"),
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


def tool(installation: Installation, name: str) -> list[str]:
    """The command of a program that stands beside the server."""
    if len(installation.command) == 1:
        return [str(Path(installation.command[0]).with_name(name))]
    tool = installation.prefix / Path(SERVER.recipe.binary).with_name(name)
    return [*debian.loader(installation.prefix), "--argv0", str(tool), str(tool)]


def _behind(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.elf")


def _front(prefix: Path, binary: Path) -> None:
    """Puts a script in the binary's place, since initdb runs `postgres` by its name, without our loader."""
    with suppress(FileExistsError):
        os.link(binary, _behind(binary))
    if not binary.samefile(_behind(binary)):
        return
    loader = " ".join(f"'{part}'" for part in debian.loader(prefix))
    script = binary.with_name(f"{binary.name}.{os.getpid()}")
    script.write_text(f'#!/bin/sh\nexec {loader} --argv0 "$0" \'{_behind(binary)}\' "$@"\n')
    script.chmod(0o755)
    script.replace(binary)
