"""Where Firebird comes from: its wheel, as it is installed or fetched, or a path; and the libraries that the
wheel expects of its host."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dbdyno.engines.firebird.beside import Beside, missing
from dbdyno.errors import EngineMissing, Unreachable, UserError
from dbdyno.obtain import debian, path, wheel
from dbdyno.obtain.installation import Installation, Offer, covers, first_covering, may_hold
from dbdyno.study.reference import Reference

CLIENT = "libfbclient.so.2"
WHEEL = wheel.Package("firebird", "firebird-embedded", CLIENT)
VERSIONS = ("5", "4")
"""Of which the wheel has releases that the driver speaks to, the latest first. The first is installed with
Dyno."""


def locate(reference: Reference) -> Installation:
    found = (
        _installation(path.file(reference.path, CLIENT), "")
        if reference.path
        else first_covering(_here(reference.version), reference, VERSIONS)
    )
    if lacking := missing(found.version):
        names, packages = _told(lacking)
        raise EngineMissing(
            f"Firebird {found.version} needs {names}, which this machine lacks",
            f"`dyno engines fetch firebird` obtains it without root; or `apt-get install {packages}`",
        )
    return found


def offers() -> list[Offer]:
    here = list(_here(""))
    try:
        found = [locate(Reference("firebird", one.version)).offer for one in here]
    except EngineMissing as missing_one:
        found = [Offer("firebird", VERSIONS[0], missing_one.message, present=False, command="firebird@5")]
    others = [one for one in VERSIONS if not any(covers(one, each.version) for each in here)]
    source = f"wheel {WHEEL.name}"
    return [
        *found,
        *(Offer("firebird", one, source, present=False, command=f"firebird@{one}") for one in others),
    ]


def fetch(version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
    wanted = version or VERSIONS[0]
    if not any(covers(version, one.version) for one in _here("")):
        if not any(may_hold(wanted, one) for one in VERSIONS):
            raise UserError(
                f"firebird@{version} cannot be fetched",
                f"there are: {', '.join(VERSIONS)}; the driver speaks to Firebird 4.0.1 and later",
            )
        wheel.fetch(WHEEL, wanted, tell)
    lacking = missing(next(one.version for one in _here("") if covers(version, one.version)))
    try:
        for each in lacking:
            debian.fetch(each.recipe, mirror=mirror, tell=tell)
    except Unreachable as unreachable:
        names, packages = _told(lacking)
        raise Unreachable(
            f"Firebird needs {names}, which this machine lacks. {unreachable.message}",
            f"check the network and proxy, or name a mirror with --mirror. Or `apt-get download {packages}` "
            "on a machine that has a network and this one's architecture, and `dpkg --install` them here",
        ) from None
    return locate(Reference("firebird", version))


def _told(lacking: Sequence[Beside]) -> tuple[str, str]:
    """The names of libraries, and Debian's packages of them."""
    names = " and ".join(each.name for each in lacking)
    return names, " ".join(package for each in lacking for package in each.recipe.packages)


def _here(version: str) -> Iterator[Installation]:
    """What is installed beside Dyno, then what was fetched. Raises EngineMissing where neither is there."""
    found = [_installation(copy.file, copy.release, copy.origin) for copy in wheel.copies(WHEEL)]
    try:
        packaged, client = wheel.file(WHEEL.name, CLIENT)
    except EngineMissing:
        if not any(covers(version, one.version) for one in found):
            raise
    else:
        yield _installation(client, packaged)
    yield from found


def _installation(client: Path, release: str, origin: str = "") -> Installation:
    """That of a client library. A `release` of the wheel has one number more than Firebird's version."""
    engine = engine_of(client.parent)
    return Installation(
        engine="firebird",
        version=".".join(release.split(".")[:3]) if release else _version_below(client),
        origin=origin or f"{client.parent}",
        prefix=client.parent,
        command=(),
        digest=path.digest(engine if engine.is_file() else client),
    )


def engine_of(prefix: Path) -> Path:
    """The file of the engine itself, which need not be there. Its number is that of the structure on disk."""
    found = sorted((prefix / "plugins").glob("libEngine*.so"))
    return found[-1] if found else prefix / "plugins/libEngine13.so"


def _version_below(client: Path) -> str:
    # The library does not tell its version without being loaded; the engine's plug-in carries it as text.
    engine = engine_of(client.parent.parent)
    text = engine.read_bytes() if engine.is_file() else client.read_bytes()
    found = re.search(rb"[LW]I-[VT](\d+\.\d+\.\d+)\.", text)
    return found[1].decode() if found else "5"
