"""What brought data hold, as a sha256: of a file, or of a folder's names and contents.

Reading them all takes long, so a digest is kept with what tells that a file is another one: its size, its
inode and when it was changed.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from dbdyno.host import paths
from dbdyno.host.cache import Tell, keep_beside, silently
from dbdyno.user_data.folder import files_of

KEPT = "digests.json"
KEPT_MOST = 256
TOLD_FROM_BYTES = 1 << 30


def digest_of(path: Path, tell: Tell = silently) -> str:
    """The sha256 of a file's bytes; of a folder, that of its files' names, sizes and contents."""
    place = str(path.resolve())
    files = list(files_of(path)) if path.is_dir() else [path]
    signature = _signature(path, files)
    kept = _kept()
    if kept.get(place, ("",))[0] == signature:
        return kept[place][1]
    if (size_bytes := sum(file.stat().st_size for file in files)) >= TOLD_FROM_BYTES:
        tell(f"reading {path}, {size_bytes / 1e9:.1f} GB, to know it again")
    found = _of_folder(path, files) if path.is_dir() else _of_file(path)
    # What was changed meanwhile would be kept under the wrong name.
    if _signature(path, files) == signature:
        kept = {**{name: pair for name, pair in _kept().items() if name != place}, place: (signature, found)}
        newest = dict(list(kept.items())[-KEPT_MOST:])
        keep_beside(paths.cache() / KEPT, json.dumps(newest))
    return found


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in files_of(path)) if path.is_dir() else path.stat().st_size


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_folder(folder: Path, files: list[Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        if file.is_file():
            whole.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0{_of_file(file)}\n".encode())
    return whole.hexdigest()


def _signature(path: Path, files: list[Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        status = file.stat()
        told = (status.st_size, status.st_ino, status.st_dev, status.st_mtime_ns, status.st_ctime_ns)
        whole.update(f"{file.relative_to(path)}\0{told}\n".encode())
    return whole.hexdigest()


def _kept() -> dict[str, tuple[str, str]]:
    with suppress(OSError, ValueError, TypeError):
        found = json.loads((paths.cache_place() / KEPT).read_text())
        return {place: (signature, digest) for place, (signature, digest) in found.items()}
    return {}
