"""Archives of others, unpacked so that nothing leads out of the folder they are meant for."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path


def unpack(archive: tarfile.TarFile, target: Path) -> None:
    """Unpacks an open archive into a folder. Raises TarError for a member that leads out of it."""
    # Newer Pythons would filter once more, and refuse the absolute links of Debian's packages.
    archive.extraction_filter = lambda member, _folder: member
    archive.extractall(target, members=harmless(archive, target))


def harmless(archive: tarfile.TarFile, target: Path) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, without special bits; a TarError for one that leads out of the target.

    As tarfile's own `tar` filter does, which Python has since 3.11.4 only. Each member is judged when its
    turn comes, because a link that was unpacked before it may lead it astray.
    """
    for member in archive:
        member.name = member.name.lstrip("/")
        if not (target / member.name).resolve().is_relative_to(target.resolve()):
            raise tarfile.TarError(f"{member.name} would be written outside of {target}")
        member.mode &= 0o755
        yield member
