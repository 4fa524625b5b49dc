"""SQLite from a library that is found or obtained to a database that the load process can open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.embedded import EmbeddedServer, refuse_unknown, require_database
from dbdyno.engines.sqlite.settings import CREATION, PRAGMAS, url
from dbdyno.errors import DriverFailed, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host import fingerprint
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian, path
from dbdyno.obtain.cross import Platforms
from dbdyno.obtain.installation import Installation, Offer, first_covering
from dbdyno.study.nouns import Reference

DATABASE = "dyno.sqlite"


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 10_000_000, "an SQLite database")
    data.mkdir(mode=0o700)
    creation = {name: level for name, level in settings.items() if name in CREATION}
    try:
        with LoadProcess({}, Launch()) as process:
            # An empty file has no header yet: this writes it, and with it what was chosen.
            process.query(url(data / DATABASE, installation.library, creation), "VACUUM")
    except DriverFailed as failed:
        shutil.rmtree(data, ignore_errors=True)
        raise ServerFailed(f"SQLite could not make its database: {failed.message}", failed.hint) from None


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> EmbeddedServer:
    database = data / DATABASE
    require_database(database)
    refuse_unknown(settings, PRAGMAS, "Dyno cannot set SQLite's", f"there are: {', '.join(sorted(PRAGMAS))}")
    chosen = {name: level for name, level in settings.items() if name not in CREATION}
    return EmbeddedServer(
        url=url(database, installation.library, chosen),
        version=installation.version,
        driver_environment=dict(launch.environment),
        driver_folders=(data, runtime, *installation.writes),
    )


LIBRARY = "libsqlite3.so.0"
NAMES = (LIBRARY, "libsqlite3.so")
RECIPE = debian.DebianRecipe(
    engine="sqlite",
    packages=("libsqlite3-0",),
    server="libsqlite3-0",
    binary=f"usr/lib/{os.uname().machine}-linux-gnu/{LIBRARY}",
    # The oldest suite that has it: the load process runs on the host's C library, which may be no newer.
    suites={"3.40": "bookworm"},
    without=("libc6",),
)

PLATFORMS = Platforms(
    engine="sqlite",
    title="SQLite",
    version=r"^(\d+\.\d+\.\d+) ",
    recipes=(replace(RECIPE, packages=("sqlite3",), server="sqlite3", binary="usr/bin/sqlite3", without=()),),
    unpacked=lambda recipe, copy: copy.installation(str(copy.prefix / recipe.binary)),
)
"""Its shell stands for it there, because a load process of this machine loads no library of another one."""


def locate(reference: Reference) -> Installation:
    if reference.path:
        return _installed(path.file(str(reference.place), *NAMES).resolve())
    return first_covering(_here(), reference, RECIPE.suites)


def offers() -> list[Offer]:
    with suppress(UserError):
        return [one.offer for one in _here()] + debian.offers(RECIPE)
    return debian.offers(RECIPE)


def fetch(version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
    return _unpacked(debian.fetch(RECIPE, version, mirror=mirror, tell=tell))


def owns(_file: str, object_file: str) -> bool:
    """Whether a function of the load process is SQLite's, by the library that holds it."""
    return object_file.rsplit("/", 1)[-1].startswith(NAMES)


def _here() -> Iterator[Installation]:
    """What the host has, as `dyno load` takes it, then what was fetched, the newest first."""
    if (on_host := fingerprint.find(LIBRARY)) is not None:
        yield _installed(on_host)
    yield from map(_unpacked, debian.fetched(RECIPE.engine))


def _unpacked(copy: debian.Fetched) -> Installation:
    library = (copy.prefix / RECIPE.binary).resolve()
    return _installation(library, path.digest_of_binary(library), copy.prefix, copy.origin)


def _installed(library: Path) -> Installation:
    return _installation(library, path.digest_of_binary(library), library.parent, str(library))


@cache
def _installation(library: Path, digest: str, prefix: Path, origin: str) -> Installation:
    """The library's own word on what it is, in a process of its own: a broken one crashes that alone. The
    word holds for the file of that digest alone.

    Raises UserError where it cannot be used.
    """
    try:
        with LoadProcess({}, Launch()) as process:
            # It reads as an empty database, so nothing is to be made and removed.
            asked = url(Path(os.devnull), library)
            version, source = process.query(asked, "SELECT sqlite_version(), sqlite_source_id()")[0]
            options = [str(row[0]) for row in process.query(asked, "PRAGMA compile_options")]
    except DriverFailed as failed:
        raise UserError(
            f"{library} cannot be used as SQLite: {failed.message}",
            'name another library, as in engine = "sqlite:/path/to/libsqlite3.so.0"; '
            "`dyno engines fetch sqlite` obtains one",
        ) from None
    return Installation(
        engine="sqlite",
        version=str(version),
        origin=origin,
        prefix=prefix,
        command=(),
        digest=digest,
        library=library,
        facts={"source": str(source), **dict(map(_fact, options))},
    )


def _fact(option: str) -> tuple[str, str]:
    """`THREADSAFE=1` and `SECURE_DELETE` as name and value, so that two builds differ by what differs."""
    name, _, value = option.partition("=")
    return f"build.{name}", value or "yes"
