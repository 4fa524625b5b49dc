"""A folder, or a database's file, that a user brings: who holds it, and a copy for a server of Dyno's.

What brought data hold is told by a sha256: of a file, or of a folder's names and contents.

Reading them all takes long, so a digest is kept with what tells that a file is another one: its size, its
inode and when it was changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host import paths
from dbdyno.host.cache import Tell, keep_beside, silently
from dbdyno.host.clone import clone_unsynced
from dbdyno.host.room import require_disk

KEPT = "digests.json"
KEPT_MOST = 256
TOLD_FROM_BYTES = 1 << 30


def digest_of_path(path: Path, tell: Tell = silently) -> str:
    """The sha256 of a file's bytes; of a folder, that of its files' names, sizes and contents."""
    place = str(path.resolve())
    files = list(files_of(path)) if path.is_dir() else [path]
    signature = signature_of(path, files)
    kept = _kept()
    if kept.get(place, ("",))[0] == signature:
        return kept[place][1]
    if (size_bytes := sum(file.stat().st_size for file in files)) >= TOLD_FROM_BYTES:
        tell(f"reading {path}, {size_bytes / 1e9:.1f} GB, to know it again")
    found = _of_folder(path, files) if path.is_dir() else _of_file(path)
    # What was changed meanwhile would be kept under the wrong name.
    if signature_of(path, files) == signature:
        kept = {**{name: pair for name, pair in _kept().items() if name != place}, place: (signature, found)}
        newest = dict(list(kept.items())[-KEPT_MOST:])
        keep_beside(paths.cache() / KEPT, json.dumps(newest))
    return found


def size_bytes_of(path: Path) -> int:
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


def signature_of(path: Path, files: Sequence[Path]) -> str:
    """What is another one as soon as one of these files, below the path, is another one or was changed."""
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


FLOCK = struct.Struct("hhqqi")
"""`struct flock` of fcntl(2) on 64-bit Linux: type, whence, start, length, process."""
SPARE_BYTES = 512 << 20
COPY_IT = "bring a whole copy, made while the server was stopped"


def holder_of(file: Path) -> int:
    """The process that holds a lock on a part of the file (fcntl(2)); 0 where none does."""
    with file.open("rb") as opened:
        # A shared lock is asked for, as the file is open for reading alone.
        asked = FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(opened, fcntl.F_GETLK, asked + bytes(8))
    kind, _, _, _, process_id = FLOCK.unpack(answer[: FLOCK.size])
    return 0 if kind == fcntl.F_UNLCK else int(process_id)


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def require_stopped(place: Path, process_id: int) -> None:
    """Raises UserError where a process still has the data."""
    if process_id and is_alive(process_id):
        raise UserError(
            f"{place} belongs to a server that runs, process {process_id}", "stop it, or bring a copy"
        )


def require_unmoved(folder: Path) -> None:
    """Raises UserError where a part of the folder lies elsewhere: a copy would share it."""
    for path in files_of(folder):
        if path.is_symlink():
            raise UserError(
                f"{path} is a link to {path.readlink()}, outside of the folder",
                "bring a copy that holds all files itself, without links",
            )


def files_of(folder: Path) -> Iterator[Path]:
    """All that the folder holds but folders, by name; links are not followed. Raises UserError for what this
    user cannot read."""
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders.sort()
        for name in sorted([*names, *links]):
            yield Path(place) / name


def copy_folder(source: Path, target: Path, left_out: Callable[[Path], bool] = lambda _: False) -> None:
    """Makes `target` hold a copy of a folder, or of a file. The copy is this user's own, whoever has the
    original. What is `left_out` by its path below the folder is not copied, and neither are sockets. Whoever
    gives the copy a name syncs it."""
    files = files_of(source) if source.is_dir() else [source]
    needed_bytes = sum(path.lstat().st_blocks * 512 for path in files)
    require_disk(target.parent, 2 * needed_bytes + SPARE_BYTES, f"a copy of {source}")
    if source.is_file():
        _copy_file(source, target)
        return
    for place, folders, names in os.walk(source, onerror=_unreadable):
        below = Path(place).relative_to(source)
        folders[:] = [name for name in folders if not left_out(below / name)]
        (target / below).mkdir(mode=0o700)
        for name in names:
            path = Path(place) / name
            if not left_out(below / name) and stat.S_ISREG(path.lstat().st_mode):
                _copy_file(path, target / below / name)


def _copy_file(source: Path, target: Path) -> None:
    try:
        clone_unsynced(source, target)
    except PermissionError as error:
        raise _no_right(error) from None
    target.chmod(0o600)
    os.chown(target, os.geteuid(), os.getegid())


def _unreadable(error: OSError) -> None:
    raise _no_right(error)


def _no_right(error: OSError) -> UserError:
    return UserError(
        f"{error.filename} cannot be read: {error.strerror}", "bring a copy that this user may read"
    )
