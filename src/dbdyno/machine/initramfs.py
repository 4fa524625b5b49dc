"""The file system that a Linux kernel starts with: an archive of the format newc, as the kernel's
documentation lays it out (Documentation/driver-api/early-userspace/buffer-format.rst)."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

MAGIC = b"070701"
LAST = "TRAILER!!!"
ALIGNMENT = 4


@dataclass(frozen=True)
class Entry:
    """A file, a folder or a device below the root. `mode` holds its kind as well; a `device` has two
    numbers."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: Iterable[Entry]) -> bytes:
    """The entries in their order. A folder has to come before what lies in it."""
    return b"".join(_packed(entry) for entry in (*entries, Entry(LAST, 0)))


def programs(files: Mapping[str, bytes]) -> list[Entry]:
    """Files that everybody may run, by their paths without a leading slash, and the folders that they lie
    in."""
    parents = {parent for name in files for parent in PurePosixPath(name).parents}
    folders = sorted(str(parent) for parent in parents if str(parent) != ".")
    return [
        *(Entry(name, stat.S_IFDIR | 0o755) for name in folders),
        *(Entry(name, stat.S_IFREG | 0o755, content) for name, content in files.items()),
    ]


def _packed(entry: Entry) -> bytes:
    """The header's 13 numbers have eight hexadecimal digits each. Name and content end at a multiple of
    four."""
    name = entry.name.encode() + b"\0"
    links, size = 1, len(entry.content)
    numbers = (0, entry.mode, 0, 0, links, 0, size, 0, 0, *entry.device, len(name), 0)
    head = MAGIC + b"".join(b"%08X" % number for number in numbers) + name
    return _padded(head) + _padded(entry.content)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % ALIGNMENT)
