"""An engine from a Debian suite, unpacked into a private folder: no root, nothing installed on the host.

The machine's own apt does what it does best: it reads the mirror, proxy and certificates that the machine
is set up with, verifies the signed index and every package's hash, and resolves dependencies. It works on
folders of ours alone, with an empty list of installed packages, so that the whole closure down to the C
library is fetched; the server later runs on that library through its own dynamic loader.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from dbdyno.errors import DynoError, Unreachable, UserError, remedy
from dbdyno.host import cache
from dbdyno.host.cache import ProgressStep, Tell, silently
from dbdyno.host.clone import tree_size_bytes
from dbdyno.obtain import apt
from dbdyno.obtain.architecture import emulator_of
from dbdyno.obtain.installation import Installation, Offer, covers, may_hold, not_installed
from dbdyno.obtain.tarball import lead_inside, unpack

MANIFEST, MUSL = cache.WHOLE["engines"], "ld-musl-*.so.*"


@dataclass(frozen=True)
class DebianRecipe:
    """What makes up an engine in Debian. Engines declare theirs.

    `packages` are asked for by name, with all that they depend on except `without`, which stands for what
    only an installation on the host would need (users, configuration prompts, service scripts). `server` is
    the package whose version is the engine's; `binary` is its path below the prefix. `suites` names the
    Debian suite that holds each version, the preferred one first. Folders that are `unneeded` are not
    unpacked. Without an `architecture` the packages are this machine's.
    """

    engine: str
    packages: tuple[str, ...]
    server: str
    binary: str
    suites: Mapping[str, str]
    without: tuple[str, ...] = ()
    unneeded: tuple[str, ...] = ()
    architecture: str = ""

    def of(self, architecture: str) -> DebianRecipe:
        """The same engine's packages of an architecture, which are kept beside those of this machine."""
        return replace(self, architecture=architecture)

    @property
    def shelved(self) -> str:
        """How the names of its copies begin. An engine's own begin with its name."""
        return f"{self.architecture}-of-{self.engine}" if self.architecture else self.engine

    def suite(self, version: str) -> str:
        """The suite that holds a version (`11.8`, `11.8.6`; empty: the preferred one). Raises UserError for
        others.
        """
        for held, suite in self.suites.items():
            if may_hold(version, held):
                return suite
        have = ", ".join(f"{self.engine}@{held} ({suite})" for held, suite in self.suites.items())
        raise UserError(
            f"{self.engine}@{version} is in no Debian suite that Dyno knows", f"there are: {have}"
        )


@dataclass(frozen=True)
class Fetched:
    """One engine in the cache, complete. `digest` identifies the `packages` it was unpacked from, which have
    a version by name. Its programs look for `libraries` in those folders first."""

    engine: str
    version: str
    suite: str
    prefix: Path
    digest: str
    fetched_unix_s: float
    architecture: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    libraries: tuple[Path, ...] = ()

    @property
    def loader(self) -> tuple[str, ...]:
        """The start of a command that runs a program on what was fetched. Raises like `loader`."""
        return loader(self.prefix, self.libraries)

    @property
    def origin(self) -> str:
        return f"Debian {self.suite}, packages in {self.prefix}"

    def installation(self, *program: str) -> Installation:
        """This copy, whose server is run by `program` after the dynamic loader."""
        return Installation(
            engine=self.engine,
            version=self.version,
            origin=self.origin,
            prefix=self.prefix,
            command=(*self.loader, *program),
            digest=self.digest,
        )


def fetched(engine: str) -> list[Fetched]:
    """Every complete unpacked copy of an engine, the newest first."""
    shelf = cache.shelf("engines")
    copies = (shelf.folder / name for name in shelf.names() if name.startswith(f"{engine}-"))
    found = [_read_manifest(copy / MANIFEST) for copy in copies]
    return sorted((one for one in found if one), key=lambda one: one.fetched_unix_s, reverse=True)


def offers(recipe: DebianRecipe) -> list[Offer]:
    """What `fetch` can obtain and has not."""
    here = [copy.version for copy in fetched(recipe.engine)]
    return [
        Offer(recipe.engine, version, f"Debian {suite}", present=False, command=f"{recipe.engine}@{version}")
        for version, suite in recipe.suites.items()
        if not any(covers(version, one) for one in here)
    ]


def fetch(
    recipe: DebianRecipe,
    version: str = "",
    *,
    mirror: str = "",
    keyring: Path | None = None,
    tell: Tell = silently,
) -> Fetched:
    """Fetches, verifies and unpacks an engine, or returns the copy that is already there when nothing is
    newer, or when the mirror does not answer.

    Two fetches at once take turns. Raises UserError when this machine cannot fetch at all, Unreachable when
    there is no copy and no answer, DynoError when the fetch fails in another way.
    """
    try:
        return _fetch(recipe, version, mirror, keyring, tell)
    except Unreachable as unreachable:
        suite = recipe.suite(version)
        here = (copy for copy in fetched(recipe.shelved) if copy.suite == suite)
        copy = next((copy for copy in here if covers(version, copy.version)), None)
        if copy is not None:
            tell(f"{unreachable.message}; the {copy.engine} {copy.version} that is here stays")
            return copy
        of = recipe.architecture
        raise not_installed(recipe.engine, version, f"Debian {suite}", unreachable, of) from None


def _fetch(recipe: DebianRecipe, version: str, mirror: str, keyring: Path | None, tell: Tell) -> Fetched:
    suite = recipe.suite(version)
    shelf = cache.shelf("engines")
    with shelf.making(f"{recipe.shelved}-{suite}", tell) as work:
        sources = apt.sources(suite, mirror, keyring)
        if recipe.architecture:
            # Its updates reach architectures on other days, and all are to have one version.
            sources = sources[:1]
        session = apt.AptSession(
            work, suite=suite, sources=sources, without=recipe.without, architecture=recipe.architecture
        )
        without = " of its last point release, without later updates" if recipe.architecture else ""
        tell(f"reading the signed index of {suite}{without}")
        session.update()
        archives = session.resolve(recipe.packages)
        found = _upstream(session.version(recipe.server))
        if not covers(version, found):
            raise UserError(
                f"Debian {suite} holds {recipe.engine} {found}, not {version}",
                f"write {recipe.engine}@{found}, or give the path of an installed server",
            )
        digest = hashlib.sha256("".join(sorted(one.sha256 for one in archives)).encode()).hexdigest()[:12]
        name = f"{recipe.shelved}-{found}-{digest}"
        if not shelf.holds(name):
            size_bytes = sum(one.size_bytes for one in archives)
            line = f"fetching {recipe.engine} {found}: {len(archives)} packages, {size_bytes / 1e6:.1f} MB"
            tell(ProgressStep.of(line, lambda: tree_size_bytes(session.archive_folder) / size_bytes))
            session.download(recipe.packages, archives)
            over: list[apt.DebianArchive] = []
            tell(ProgressStep.of(f"unpacking {recipe.engine} {found}", lambda: len(over) / len(archives)))
            _unpack(archives, session.archive_folder, work / "unpacked", over, recipe.unneeded)
            if recipe.architecture:
                lead_inside(work / "unpacked")
            _write_manifest(work / "unpacked", recipe, found, digest, session, archives)
            # A name must not outlive a loss of power that the contents do not.
            os.sync()
            shelf.keep(work / "unpacked", name, f"{recipe.engine} {found}", f"Debian {suite}")
        there = _read_manifest(shelf.folder / name / MANIFEST)
        assert there is not None
        return there


def loader(prefix: Path, first: Sequence[Path] = ()) -> tuple[str, ...]:
    """The start of a command that runs a binary below `prefix` on the C library that came with it, under an
    emulator where that is made for another machine. It looks for libraries in the folders `first`. Raises
    DynoError where there is none or no emulator.

    `--inhibit-cache` keeps the host's ld.so.cache, which names the host's libraries, out of the search.
    """
    # Up to Debian 12 the C library lies in /lib, and what depends on it in /usr/lib.
    roots = (prefix / "usr", prefix)
    places = [place for root in roots for place in (*root.glob("lib*"), *root.glob("lib/*-linux-gnu*"))]
    # Of ppc64el and s390x it is called ld64.so; musl is the C library of Alpine's images.
    names = ("ld-linux*.so.*", "ld64.so.*", MUSL)
    listed = (found for place in places for name in names for found in place.glob(name))
    loaders = sorted(found for found in listed if found.is_file())
    if not loaders:
        raise DynoError(f"no dynamic loader below {prefix}", "remove that folder and fetch the engine again")
    # Other systems than Debian have them where the C library is.
    own = [one for one in places if one.name.endswith("-linux-gnu") or next(one.glob("libc.*so*"), None)]
    emulator, libraries = emulator_of(loaders[0]), ":".join(map(str, [*first, *own]))
    uncached = () if loaders[0].match(MUSL) else ("--inhibit-cache",)
    return (*emulator, str(loaders[0]), *uncached, "--library-path", libraries)


def _upstream(version: str) -> str:
    """`1:11.8.6-0+deb13u1` is upstream's 11.8.6 (Debian Policy 5.6.12)."""
    return version.split(":", 1)[-1].rsplit("-", 1)[0]


def _unpack(
    archives: list[apt.DebianArchive],
    folder: Path,
    target: Path,
    over: list[apt.DebianArchive],
    without: tuple[str, ...],
) -> None:
    """Notes each archive in `over` once it is unpacked."""
    # Here, because only a fetch unpacks, and every study asks where its engine is.
    from debian.debfile import DebError, DebFile

    target.mkdir()
    for archive in archives:
        path = folder / archive.name
        try:
            with DebFile(path) as package:
                unpack(package.data.tgz(), target, without)
            over.append(archive)
        except (DebError, tarfile.TarError, EOFError, OSError) as error:
            told = f"cannot unpack {archive.name}: {error}"
            raise DynoError(told, remedy(error, torn="fetch it again")) from None


def _write_manifest(
    folder: Path,
    recipe: DebianRecipe,
    version: str,
    digest: str,
    session: apt.AptSession,
    archives: list[apt.DebianArchive],
) -> None:
    manifest = {
        "engine": recipe.engine,
        "version": version,
        "suite": session.suite,
        "architecture": recipe.architecture,
        "digest": digest,
        "fetched_unix_s": time.time(),
        "sources": session.source_lines,
        "packages": [
            {"name": one.name, "size_bytes": one.size_bytes, "sha256": one.sha256} for one in archives
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    if not (folder / recipe.binary).is_file():
        raise DynoError(
            f"{recipe.server} {version} of {session.suite} does not hold {recipe.binary}",
            "this suite packages the engine in another way; give the path of an installed server",
        )


def _read_manifest(path: Path) -> Fetched | None:
    try:
        manifest = json.loads(path.read_text())
        return Fetched(
            engine=manifest["engine"],
            version=manifest["version"],
            suite=manifest["suite"],
            prefix=path.parent,
            digest=manifest["digest"],
            fetched_unix_s=manifest["fetched_unix_s"],
            architecture=manifest.get("architecture", ""),
            packages=dict(_package(one["name"]) for one in manifest.get("packages", ())),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _package(archive: str) -> tuple[str, str]:
    """Name and version in the file name of a package: `libc6_2.36-9_s390x.deb`."""
    name, _, rest = archive.partition("_")
    return name, unquote(rest.rpartition("_")[0])
