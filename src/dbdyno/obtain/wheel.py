"""An engine that comes inside a Python wheel: one that is installed beside Dyno, or another release of it
that is unpacked into a private folder.

This Python's own pip reads the index, proxy and certificates that the machine is set up with, and holds what
it brings against the hash that the index gives it. It installs nothing, and runs no code of the wheel.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from dbdyno.errors import DynoError, EngineMissing, UserError, remedy
from dbdyno.host import cache
from dbdyno.host.cache import Tell, silently
from dbdyno.host.process import die_with_parent

MANIFEST = cache.WHOLE["engines"]


@dataclass(frozen=True)
class WheelPackage:
    """An engine's wheel, by its name in the index. A copy of it must hold a file whose name has this
    `ending`."""

    engine: str
    name: str
    ending: str


@dataclass(frozen=True)
class WheelCopy:
    """A wheel that is unpacked in the cache, whole. `release` is its version."""

    name: str
    release: str
    prefix: Path
    file: Path

    @property
    def origin(self) -> str:
        return f"wheel {self.name} {self.release} in {self.prefix}"


def file(wheel: str, ending: str) -> tuple[str, Path]:
    """The wheel's version, and the path of its file whose name ends so.

    Raises EngineMissing when the wheel is not installed beside Dyno, or holds no such file on this platform.
    """
    try:
        installed = distribution(wheel)
    except PackageNotFoundError:
        raise EngineMissing(f"the wheel {wheel} is not installed", f"`pip install {wheel}`") from None
    for entry in installed.files or []:
        path = Path(str(installed.locate_file(entry)))
        if str(entry).endswith(ending) and path.is_file():
            return installed.version, path.resolve()
    raise EngineMissing(
        f"{wheel} {installed.version} holds no {ending} for this platform",
        f"`pip install --force-reinstall {wheel}` on x86-64 or ARM Linux",
    )


def copies(package: WheelPackage) -> list[WheelCopy]:
    """Every whole copy, the one that was fetched last first."""
    shelf = cache.shelf("engines")
    names = (name for name in shelf.names() if name.startswith(f"wheel-{package.engine}-"))
    found = [_copy_at(shelf.folder / name, package) for name in names]
    return [copy for _, copy in sorted(filter(None, found), key=lambda one: one[0], reverse=True)]


def fetch(package: WheelPackage, version: str, tell: Tell = silently) -> WheelCopy:
    """Fetches and unpacks the latest release of a version. Raises UserError where this Python has no pip,
    DynoError where the index has no such release for this machine, or the fetch fails."""
    shelf = cache.shelf("engines")
    with shelf.making(f"wheel-{package.engine}", tell) as work:
        tell(f"fetching {package.engine} {version}: wheel {package.name}")
        archive = _downloaded(package, version, work)
        release = archive.name.split("-")[1]
        name = f"wheel-{package.engine}-{release}-{hashlib.sha256(archive.name.encode()).hexdigest()[:12]}"
        target = work / "unpacked"
        _unpack(package, archive, target)
        manifest = {"name": package.name, "release": release, "fetched_unix_s": time.time()}
        (target / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        shelf.keep(target, name, f"{package.engine} {release}", f"wheel {package.name}")
        there = _copy_at(shelf.folder / name, package)
        assert there is not None
        return there[1]


def _downloaded(package: WheelPackage, version: str, work: Path) -> Path:
    if find_spec("pip") is None:
        raise UserError(
            "this Python has no pip, which fetches wheels",
            "`python -m ensurepip`, or give the library's path",
        )
    wanted = f"{package.name}=={version}.*"
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "download", *options, f"--dest={work}", wanted],
        cwd=work,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent(),
    )
    archive = next(work.glob("*.whl"), None)
    if done.returncode or archive is None:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        told = lines[-1].removeprefix("ERROR: ") if lines else f"exit code {done.returncode}"
        raise DynoError(f"pip cannot fetch {wanted}: {told}", "look at pip's own configuration and network")
    return archive


def _unpack(package: WheelPackage, archive: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(target)
    except (zipfile.BadZipFile, OSError) as error:
        told = f"cannot unpack {archive.name}: {error}"
        raise DynoError(told, remedy(error, torn="fetch it again")) from None
    if not any(target.rglob(f"*{package.ending}")):
        raise DynoError(f"{archive.name} holds no {package.ending}", "give the path of the library")


def _copy_at(prefix: Path, package: WheelPackage) -> tuple[float, WheelCopy] | None:
    try:
        manifest = json.loads((prefix / MANIFEST).read_text())
        found = next(prefix.rglob(f"*{package.ending}"))
        copy = WheelCopy(name=manifest["name"], release=manifest["release"], prefix=prefix, file=found)
        return float(manifest["fetched_unix_s"]), copy
    except (OSError, ValueError, KeyError, StopIteration):
        return None
