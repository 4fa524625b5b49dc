"""Where Keystone is installed: in a virtual environment of Python, made with pip."""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import distributions
from pathlib import Path

from dbdyno.errors import EngineMissing
from dbdyno.host import paths
from dbdyno.host.writers import require_own
from dbdyno.obtain.installation import Installation, covers
from dbdyno.study.nouns import Application

NEEDED = ("keystone", "gunicorn", "pymysql")
"""Keystone itself, the server that runs its WSGI application, and how it reaches a database."""

LATEST = "30.0.0"
"""What is proposed where a study names no version."""


def locate(wish: Application) -> Installation:
    """The environment that a study names, else the one of that version in Dyno's cache."""
    shelf = paths.cache_place() / "applications"
    prefixes = [Path(wish.path).expanduser()] if wish.path else _newest_first(shelf)
    for prefix in prefixes:
        packages = packages_of(prefix)
        version = packages.get("keystone", "")
        if version and covers(wish.version, version):
            return _installation(prefix, packages, version)
    version = wish.version or LATEST
    prefix = prefixes[0] if wish.path else shelf / f"keystone-{version}"
    raise EngineMissing(f"Keystone {version} is not on this machine", _command(prefix, version))


def _newest_first(shelf: Path) -> list[Path]:
    """The environments on the shelf by the numbers in their names, as 10 comes after 9."""

    def numbers(prefix: Path) -> list[int]:
        return [int(digits) for digits in re.findall(r"\d+", prefix.name)]

    return sorted(shelf.glob("keystone*"), key=numbers, reverse=True)


def _installation(prefix: Path, packages: dict[str, str], version: str) -> Installation:
    if any(name not in packages for name in NEEDED):
        raise EngineMissing(f"Keystone in {prefix} lacks its server", _command(prefix, version))
    for program in ("gunicorn", "keystone-manage"):
        require_own(prefix / "bin" / program)
    return Installation(
        engine="keystone",
        version=version,
        origin=str(prefix),
        prefix=prefix,
        command=(str(prefix / "bin" / "gunicorn"),),
        digest=digest_of(packages),
    )


def packages_of(prefix: Path) -> dict[str, str]:
    """Each package of an environment with its version; none where there is no environment."""
    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    found = distributions(path=folders) if folders else ()
    # pip leaves folders without a name behind when it is interrupted.
    return {one.name.lower(): one.version for one in found if one.name}


def digest_of(packages: dict[str, str]) -> str:
    """Identifies the packages: an application's version is that of all that it runs on."""
    listed = "\n".join(f"{name}=={packages[name]}" for name in sorted(packages))
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


def _command(prefix: Path, version: str) -> str:
    wanted = " ".join((f"keystone=={version}", "gunicorn", "PyMySQL"))
    return f"`python3 -m venv {prefix} && {prefix}/bin/pip install {wanted}` installs it"
