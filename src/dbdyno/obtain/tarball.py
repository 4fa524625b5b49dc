"""Archives of others, unpacked so that nothing leads out of the folder they are meant for."""

from __future__ import annotations

import errno
import os
import tarfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from dbdyno.host.room import free_disk_bytes


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


def harmless(archive: Iterable[tarfile.TarInfo], target: Path) -> Iterator[tarfile.TarInfo]:
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
    # `Path.resolve` tells of a circle in Pythons before 3.13 alone.
    place = Path(os.path.realpath(target / relative))
    if _is_in_a_circle(place):
        raise tarfile.TarError(f"{name} lies behind links that lead to themselves")
    if not place.is_relative_to(target.resolve()):
        raise tarfile.TarError(f"{name} would be written outside of {target}")
    return relative


def _is_in_a_circle(place: Path) -> bool:
    try:
        place.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False
