"""Archives of others, unpacked so that nothing leads out of the folder they are meant for."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path


def unpack(archive: tarfile.TarFile, target: Path) -> None:
    """Unpacks an open archive into a folder. Raises TarError for a member that leads out of it, and for a
    device."""
    # Newer Pythons would filter once more, and refuse the absolute links of Debian's packages.
    archive.extraction_filter = lambda member, _folder: member
    archive.extractall(target, members=harmless(archive, target))


def harmless(archive: tarfile.TarFile, target: Path) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, without special bits, all this user's; a TarError for one that leads out of
    the target, and for a device.

    As tarfile's own `tar` filter does, which Python has since 3.11.4 only. Each member is judged when its
    turn comes, because a link that was unpacked before it may lead it astray. What follows a hard link writes
    into the file that it names, so that name is judged as well.
    """
    for member in archive:
        if member.isdev():
            raise tarfile.TarError(f"{member.name} is a device or a pipe")
        member.name = _inside(member.name, target)
        if member.islnk():
            member.linkname = _inside(member.linkname, target)
        member.mode &= 0o755
        # Root would give the files to whoever has the number or the name that the archive's maker had.
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        yield member


def _inside(name: str, target: Path) -> str:
    """A path relative to the target. Raises TarError where it leads out of it."""
    relative = name.lstrip("/")
    if not (target / relative).resolve().is_relative_to(target.resolve()):
        raise tarfile.TarError(f"{name} would be written outside of {target}")
    return relative
