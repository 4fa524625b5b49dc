"""Where Firebird comes from: its wheel, or a path; and the libraries that the wheel expects of its host."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from dbdyno.engines.firebird.beside import Beside, missing
from dbdyno.errors import EngineMissing, EngineUnobtainable, Unreachable
from dbdyno.obtain import debian, path, wheel
from dbdyno.obtain.installation import Installation, Offer, covers, may_hold
from dbdyno.study.reference import Reference

WHEEL = "firebird-embedded"
VERSION = "5"
"""Of which the wheel has releases."""
CLIENT = "libfbclient.so.2"


def locate(reference: Reference) -> Installation:
    if reference.path:
        client = path.file(reference.path, CLIENT)
        version = _version_below(client)
    else:
        packaged, client = wheel.file(WHEEL, CLIENT)
        version = ".".join(packaged.split(".")[:3])
    if not may_hold(reference.version, VERSION):
        raise EngineUnobtainable(
            f"firebird@{reference.version} cannot be had; Firebird {version} is on this machine",
            f"write firebird@{VERSION}: `{WHEEL}` holds no other",
        )
    if not covers(reference.version, version):
        raise EngineMissing(
            f"firebird@{reference.version} is not on this machine; Firebird {version} is",
            f"`pip install '{WHEEL}=={reference.version}.*'`",
        )
    if lacking := missing():
        names, packages = _told(lacking)
        raise EngineMissing(
            f"Firebird {version} needs {names}, which this machine lacks",
            f"`dyno engines fetch firebird` obtains it without root; or `apt-get install {packages}`",
        )
    engine = engine_of(client.parent)
    return Installation(
        engine="firebird",
        version=version,
        origin=f"{client.parent}",
        prefix=client.parent,
        command=(),
        digest=path.digest(engine if engine.is_file() else client),
    )


def offers() -> list[Offer]:
    try:
        here = locate(Reference("firebird"))
    except EngineMissing as missing:
        return [Offer("firebird", VERSION, missing.message, present=False, command=f"firebird@{VERSION}")]
    return [here.offer]


def fetch(version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
    lacking = missing()
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
