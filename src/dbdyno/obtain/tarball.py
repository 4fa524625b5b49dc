"""A tarball as a vendor publishes it: held against its checksum, and unpacked once into a private folder.

Archives of others, unpacked so that nothing leads out of the folder they are meant for.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from dbdyno.errors import UserError, remedy
from dbdyno.host.cache import WHOLE, shelf
from dbdyno.host.room import free_disk_bytes
from dbdyno.host.writers import require_own


def unpack(archive: tarfile.TarFile, target: Path, without: Collection[str] = ()) -> None:
    """Unpacks an open archive into a folder, `without` what lies in these folders of it. Raises TarError for
    a member that leads out of it, and for a device."""
    # Newer Pythons would filter once more, and refuse the absolute links of Debian's packages.
    archive.extraction_filter = lambda member, _folder: member
    archive.extractall(target, members=_wanted(harmless(archive, target), without))


def lead_inside(root: Path) -> None:
    """Has the absolute links of what was unpacked lead to what they mean in it. A compiler that looks at a
    root from outside would follow them into the host's own folders."""
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_absolute():
            link.unlink()
            link.symlink_to(os.path.relpath(root / target.relative_to("/"), link.parent))


def _wanted(members: Iterator[tarfile.TarInfo], without: Collection[str]) -> Iterator[tarfile.TarInfo]:
    for member in members:
        if not any(PurePosixPath(member.name).is_relative_to(folder) for folder in without):
            yield member


def harmless(archive: tarfile.TarFile, target: Path) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, without special bits, all this user's, who can read and remove them; a
    TarError for one that leads out of the target, for a device, and for more than the disk has room for.

    As tarfile's own `tar` filter does, which Python has since 3.11.4 only. Each member is judged when its
    turn comes, because a link that was unpacked before it may lead it astray. What follows a hard link writes
    into the file that it names, so that name is judged as well.
    """
    left_bytes = free_disk_bytes(target)
    for member in archive:
        if member.isdev():
            raise tarfile.TarError(f"{member.name} is a device or a pipe")
        # A few kilobytes can stand for terabytes, and a full disk hurts others as well.
        left_bytes -= member.size
        if left_bytes < 0:
            raise tarfile.TarError(
                f"the disk of {target} has no room for {member.name} and what is before it"
            )
        member.name = _inside(member.name, target)
        if member.islnk():
            member.linkname = _inside(member.linkname, target)
        member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0o600)
        # Root would give the files to whoever has the number or the name that the archive's maker had.
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        yield member


def _inside(name: str, target: Path) -> str:
    """A path relative to the target. Raises TarError where it leads out of it."""
    relative = name.lstrip("/")
    if not (target / relative).resolve().is_relative_to(target.resolve()):
        raise tarfile.TarError(f"{name} would be written outside of {target}")
    return relative


ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
READ_BYTES = 1 << 20
MANIFEST = WHOLE["engines"]
SUMS = ("{name}.sha256", "{name}.sha256sum", "sha256sums.txt", "SHA256SUMS")
"""Where a vendor's checksum may stand, beside the tarball."""


@dataclass(frozen=True)
class Unpacked:
    """The folder that a tarball was unpacked into, and its hash. `checked` is the file that told the same
    hash; empty where none lies beside it."""

    folder: Path
    sha256: str
    checked: str = ""

    @property
    def words(self) -> str:
        known = f"as {self.checked} says" if self.checked else "no checksum lies beside it"
        return f"SHA-256 {self.sha256}, {known}"


def is_tarball(path: Path) -> bool:
    return path.name.endswith(ENDINGS) and path.is_file()


def unpacked(path: Path) -> Unpacked:
    """What a tarball holds. Raises UserError for one that another user could have written, that is not what
    its checksum says, or that cannot be unpacked."""
    require_own(path)
    status = path.stat()
    return _unpacked(path.absolute(), status.st_size, status.st_mtime_ns)


@cache
def _unpacked(path: Path, _size_bytes: int, _changed_ns: int) -> Unpacked:
    with path.open("rb") as archive:
        sha256 = hashlib.file_digest(archive, "sha256").hexdigest()
    checked = _checked(path, sha256)
    folder = shelf("engines").once(f"tarball-{sha256[:24]}", lambda making: _make(path, sha256, making))
    return Unpacked(_top(folder / "unpacked"), sha256, checked)


def _checked(path: Path, sha256: str) -> str:
    """The file beside the tarball that tells its hash; empty where there is none."""
    for form in SUMS:
        sums = path.with_name(form.format(name=path.name))
        if not sums.is_file():
            continue
        named = rf"^([0-9a-fA-F]{{64}})(?:\s+\*?(?:\./)?{re.escape(path.name)})?\s*$"
        found = re.search(named, sums.read_text(errors="replace"), re.MULTILINE)
        if found is None:
            continue
        if found[1].lower() != sha256:
            raise UserError(
                f"{path} has SHA-256 {sha256}, but {sums.name} says {found[1].lower()}",
                "download it again from its vendor",
            )
        return sums.name
    return ""


def _make(path: Path, sha256: str, making: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file) as archive:
            unpack(archive, making / "unpacked")
            # What follows the last file is not read otherwise, and it holds the checksum of what was packed.
            while archive.fileobj is not None and archive.fileobj.read(READ_BYTES):
                pass
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        told = f"{path} cannot be unpacked: {error}"
        raise UserError(told, remedy(error, torn="download it again")) from None
    if found != sha256:
        # Its checksum was held against other bytes than were unpacked.
        raise UserError(f"{path} was changed while it was unpacked", "have nobody write it, then try again")
    # What makes an engine whole on its shelf.
    (making / MANIFEST).write_text(json.dumps({"tarball": str(path), "sha256": sha256}, indent=1) + "\n")
    return path.name, str(path)


def _top(folder: Path) -> Path:
    """The one folder that a tarball holds, as vendors pack them; else all of it."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder
