"""Where SQLite comes from: it is built into the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from dbdyno.driver.query import query
from dbdyno.errors import EngineMissing, UserError
from dbdyno.obtain.installation import Installation, Offer, covers
from dbdyno.study.reference import Reference


def locate(reference: Reference) -> Installation:
    if reference.path:
        raise UserError("SQLite is built into the driver and has no path", 'write engine = "sqlite"')
    version = _version()
    if not covers(reference.version, version):
        raise EngineMissing(f"sqlite@{reference.version} is not here", f"the driver has SQLite {version}")
    return Installation(
        engine="sqlite",
        version=version,
        origin="built into the driver",
        prefix=Path("/"),
        command=(),
        digest=version,
    )


def offers() -> list[Offer]:
    return [locate(Reference("sqlite")).offer]


def fetch(version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
    return locate(Reference("sqlite", version))


def _version() -> str:
    """The library's version, asked of the library itself."""
    with TemporaryDirectory() as folder:
        return str(query(f"sqlite://{quote(folder, safe='/')}/empty.sqlite", "SELECT sqlite_version()")[0][0])
