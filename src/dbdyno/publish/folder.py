"""A published folder on disk: written whole or not at all, and read as it lies there."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from dbdyno.errors import UserError, remedy
from dbdyno.host.clone import sync_folder
from dbdyno.publish.contents import Contents, Malformed
from dbdyno.records.chain import sha256

WHOLE_BYTES_MOST = 512 << 20
"""What is read as a whole: a folder of others may hold files of any size."""


def require_empty(folder: Path) -> None:
    """Raises UserError where the folder holds something already, or is no folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder} is there already, and is no folder", "name another one")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty", "name another folder, or empty that one")


def write_folder(folder: Path, contents: Contents) -> None:
    """Makes the folder with all files, which get their names once all are on disk. Raises UserError where it
    is not free, or cannot be written."""
    require_empty(folder)
    # A path may end in a dot, which has no name to make another one of.
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay
    making = folder.with_name(f".{folder.name}.making")
    try:
        shutil.rmtree(making, ignore_errors=True)
        for name, content in contents.items():
            _write(making / name, content)
        for inner in {making, *((making / name).parent for name in contents)}:
            sync_folder(inner)
        making.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        told = f"cannot write {folder}: {error.strerror or error}"
        raise UserError(told, remedy(error) or "choose another folder") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


class Lying(Mapping[str, bytes]):
    """The files of a folder, each read when it is asked for. Raises Malformed for one that is larger than any
    that Dyno publishes, or cannot be read."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self._folder = folder
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> bytes:
        if name not in self._names:
            raise KeyError(name)
        with self._opened(name) as file:
            if os.fstat(file.fileno()).st_size > WHOLE_BYTES_MOST:
                most = f"{WHOLE_BYTES_MOST >> 20} MiB"
                raise Malformed(name, f"it is larger than {most}, and Dyno publishes no such file")
            return file.read(WHOLE_BYTES_MOST)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def sha256(self, name: str) -> str:
        """The digest of a file, which is read in pieces; empty for one that is larger than any that Dyno
        publishes, because it is none of those."""
        with self._opened(name) as file:
            if os.fstat(file.fileno()).st_size > WHOLE_BYTES_MOST:
                return ""
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def _opened(self, name: str) -> Iterator[BufferedReader]:
        try:
            # What was a file a moment ago may be a link or a pipe by now.
            with open(self._folder / name, "rb", opener=_not_followed) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise Malformed(name, "it is no file any more")
                yield file
        except OSError as error:
            raise Malformed(name, f"it cannot be read: {error.strerror or error}") from None


def _not_followed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def sha256_in(contents: Mapping[str, bytes], name: str) -> str:
    """The digest of a file, wherever it is."""
    return contents.sha256(name) if isinstance(contents, Lying) else sha256(contents[name])


def read_folder(folder: Path) -> tuple[Lying, list[str]]:
    """Every file of the folder, and what else lies there: links and devices, which are not followed nor
    opened. Raises UserError for what is no folder, or cannot be read."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", "name the folder that dyno publish wrote")
    names: list[str] = []
    strange: list[str] = []
    try:
        for path in sorted(folder.rglob("*")):
            name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
            if stat.S_ISREG(mode) and os.access(path, os.R_OK):
                names.append(name)
            elif stat.S_ISREG(mode):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            elif not stat.S_ISDIR(mode):
                strange.append(name)
    except OSError as error:
        told = f"cannot read {error.filename or folder}: {error.strerror or error}"
        raise UserError(told, remedy(error)) from None
    return Lying(folder, names), strange
