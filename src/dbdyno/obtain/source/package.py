"""A distribution's source package, as the distribution builds it: its archives, and its patches upon them.

The machine's own apt fetches it, and checks the index's signature and the hash of each file. The archives are
kept as they are, because unpacking them again takes less than a second copy of the source would.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import tarfile
import zlib
from functools import partial
from pathlib import Path

from dbdyno.errors import DynoError, UserError
from dbdyno.host import cache
from dbdyno.host.cache import Tell, silently
from dbdyno.obtain import apt
from dbdyno.obtain.source import tree as patch
from dbdyno.obtain.source.recipe import SourcePackage
from dbdyno.obtain.source.tree import SourceTree
from dbdyno.obtain.tarball import unpack

MANIFEST = "source.json"
ARCHIVES = "archives"
MAIN, COMPONENT = re.compile(r"\.orig\.tar\.\w+$"), re.compile(r"\.orig-([\w-]+)\.tar\.\w+$")
OF_DEBIAN = re.compile(r"\.debian\.tar\.\w+$")
BY_HAND = "unpack this source yourself, and name its folder as source.origin"
PINNED = "pinned"
"""What the manifest of a copy has beside, and its name at the end, where a study named the version."""
CHANGES_OF_FORMAT_1 = ".diff.gz"
AGAIN = "check the space on the disk; `dyno cache free --kind sources` has it fetched again"


def kept(wanted: SourcePackage, tell: Tell = silently) -> SourceTree | None:
    """The copy that was fetched already, which nobody frees until this process ends; None where there is
    none."""
    shelf = cache.shelf("sources")
    for name, manifest in _copies(shelf, wanted):
        if (folder := shelf.take(name, tell)) is not None:
            title = f"Debian {wanted.suite}, {wanted.package} {manifest['version']}"
            archives = sorted((folder / ARCHIVES).iterdir())
            return SourceTree(title, manifest["digest"], partial(lay_package, archives))
    return None


def _copies(shelf: cache.Shelf, wanted: SourcePackage) -> list[tuple[str, dict[str, str]]]:
    """The copies that would do, by name, with their manifests; the latest version first. One that a study
    fetched by its version is for those alone that name this version."""
    found = []
    for name in shelf.names():
        manifest = _manifest(shelf, name)
        if manifest.get("of") == _label(wanted) and (shelf.folder / name / ARCHIVES).is_dir():
            if wanted.version:
                does = manifest["version"] == _without_epoch(wanted.version)
            else:
                does = PINNED not in manifest
            found += [(name, manifest)] * does
    return _latest_first(found) if len(found) > 1 else found


def _latest_first(copies: list[tuple[str, dict[str, str]]]) -> list[tuple[str, dict[str, str]]]:
    # Here, because it is seldom that there are several to compare.
    from debian.debian_support import Version

    return sorted(copies, key=lambda copy: Version(copy[1]["version"]), reverse=True)


def fetched(
    wanted: SourcePackage, *, mirror: str = "", keyring: Path | None = None, tell: Tell = silently
) -> SourceTree:
    """Fetches it, where no one has done so meanwhile. Raises DynoError when that fails, and for a format
    that Dyno does not unpack."""
    shelf = cache.shelf("sources")
    with shelf.making(f"{wanted.package}-{wanted.suite}", tell) as work:
        if (found := kept(wanted, tell)) is not None:
            return found
        origins = apt.sources(wanted.suite, mirror, keyring, kind="deb-src")
        session = apt.AptSession(work / "apt", suite=wanted.suite, sources=origins, kind="deb-src")
        tell(f"reading the signed index of the sources of {wanted.suite}")
        session.update()
        tell(f"fetching the source of {wanted.package}")
        archives = _archives_of(wanted, session)
        version = _version_of([one.name for one in archives])
        _upstream([Path(one.name) for one in archives])
        made = work / "made"
        (made / ARCHIVES).mkdir(parents=True)
        for one in archives:
            (session.archive_folder / one.name).rename(made / ARCHIVES / one.name)
        digest = hashlib.sha256("".join(sorted(one.sha256 for one in archives)).encode()).hexdigest()
        manifest = {"of": _label(wanted), "version": version, "digest": digest}
        manifest |= {PINNED: wanted.version} if wanted.version else {}
        (made / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        # A name must not outlive a loss of power that the contents do not.
        os.sync()
        name = f"{wanted.package}_{version}-{digest[:12]}" + f"-{PINNED}" * bool(wanted.version)
        shelf.keep(made, name, f"the source of {wanted.package} {version}", f"Debian {wanted.suite}")
    found = kept(wanted, tell)
    assert found is not None, "it was kept just now"
    return found


def _archives_of(wanted: SourcePackage, session: apt.AptSession) -> list[apt.DebianArchive]:
    """Fetches the archives. Raises UserError where the suite lists none of that version, and DynoError with
    the versions that are served instead."""
    # A suite and its security updates may list the same one.
    versions = list(dict.fromkeys(session.source_versions(wanted.package)))
    version = wanted.version or (versions or [""])[-1]
    if version not in versions:
        reason = f"{wanted.suite} has no source of {' '.join(filter(None, [wanted.package, version]))}"
        raise UserError(reason, f"it has {', '.join(versions)}" if versions else "name another suite")
    try:
        return session.source(wanted.package, version)
    except DynoError as failed:
        others = [other for other in reversed(versions) if other != version]
        raise DynoError(failed.message, failed.hint + _instead(wanted, others, session)) from None


def _instead(wanted: SourcePackage, versions: list[str], session: apt.AptSession) -> str:
    """What the mirror serves of the other versions that it lists, the latest first."""
    served = [version for version in versions if session.serves_source(wanted.package, version)]
    if not versions:
        return ""
    listed = f"{len(versions)} other version" + "s" * (len(versions) > 1)
    if not served:
        return f"; of {listed} that {wanted.suite} lists ({', '.join(versions)}), it serves none"
    origins = [f'`source.origin = "debian:{wanted.suite}={version}"`' for version in served]
    return f"; of {listed} that {wanted.suite} lists, it serves {', '.join(origins)}"


def _version_of(names: list[str]) -> str:
    """The version in the name of the description. Raises DynoError where no file is one."""
    description = next((name for name in names if name.endswith(".dsc")), None)
    if description is None:
        raise DynoError(f"{', '.join(names) or 'no files'} hold no description (.dsc)", BY_HAND)
    return description.removesuffix(".dsc").partition("_")[2]


def _without_epoch(version: str) -> str:
    """As the name of a file has it."""
    return version.rpartition(":")[2]


def _label(wanted: SourcePackage) -> str:
    return f"{wanted.package} of {wanted.suite}"


def _manifest(shelf: cache.Shelf, name: str) -> dict[str, str]:
    try:
        manifest: dict[str, str] = json.loads((shelf.folder / name / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    return manifest


def lay_package(files: list[Path], tree: Path) -> None:
    """Unpacks a source package of the format 3.0 and puts the distribution's patches upon it. Raises
    DynoError where an archive is torn or cannot be written, and for another format."""
    main = _upstream(files)
    try:
        _lay(main, files, tree)
    except OSError as error:
        raise DynoError(f"cannot lay out {main.name}: {error}", AGAIN) from None


def _upstream(files: list[Path]) -> Path:
    """The archive of upstream's own files. Raises DynoError where there is none, and for the format 1.0."""
    main = next((file for file in files if MAIN.search(file.name)), None)
    names = ", ".join(file.name for file in files)
    if main is None:
        raise DynoError(f"{names} hold no upstream archive", BY_HAND)
    if any(file.name.endswith(CHANGES_OF_FORMAT_1) for file in files):
        raise DynoError(f"{names} are of the source format 1.0, which Dyno does not unpack", BY_HAND)
    return main


def _lay(main: Path, files: list[Path], tree: Path) -> None:
    _unpack_root(main, tree)
    for file in files:
        if component := COMPONENT.search(file.name):
            _remove(tree / component[1])
            _unpack_root(file, tree / component[1])
        elif OF_DEBIAN.search(file.name):
            # Upstream's own is replaced as a whole, as dpkg-source does.
            _remove(tree / "debian")
            _unpack(file, tree)
    for name in _series(tree):
        content = (tree / "debian" / "patches" / name).read_bytes()
        one = patch.Patch(name=name, content=content)
        if any(patch.files_of_patch(content)):
            patch.require_harmless(one)
            patch.apply(one, tree)


def _series(tree: Path) -> list[str]:
    """The distribution's patches in their order."""
    series = tree / "debian" / "patches" / "series"
    if not series.is_file():
        return []
    text = series.read_text(errors="replace")
    lines = (line.split("#", 1)[0].split() for line in text.splitlines())
    return [words[0] for words in lines if words]


def _unpack_root(file: Path, tree: Path) -> None:
    """Unpacks an archive whose files stand in one folder; `tree` becomes that folder."""
    beside = tree.with_name(f"{tree.name}.unpacked")
    beside.mkdir()
    _unpack(file, beside)
    inside = list(beside.iterdir())
    if len(inside) == 1 and inside[0].is_dir():
        inside[0].rename(tree)
        beside.rmdir()
    else:
        beside.rename(tree)


def _unpack(file: Path, folder: Path) -> None:
    """Unpacks an archive into a folder. Raises DynoError where that fails."""
    try:
        with tarfile.open(file) as archive:
            unpack(archive, folder)
    except (tarfile.TarError, EOFError, OSError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise DynoError(f"cannot unpack {file.name}: {error}", AGAIN) from None


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
