"""A published folder on disk: written whole or not at all, and read as it lies there."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host.syncing import sync_folder
from dbdyno.publish.contents import Contents


def require_free(folder: Path) -> None:
    """Raises UserError where the folder holds something already, or is no folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder} is there already, and is no folder", "name another one")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty", "name another folder, or empty that one")


def write_folder(folder: Path, contents: Contents) -> None:
    """Makes the folder with all files, which get their names once all are on disk. Raises UserError where it
    is not free, or cannot be written."""
    require_free(folder)
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
        raise UserError(told, "choose another folder, or make room there") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def read_folder(folder: Path) -> tuple[Contents, list[str]]:
    """Every file of the folder, and what else lies there: links and devices, which are not followed nor
    opened. Raises UserError for what is no folder, or cannot be read."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder", "name the folder that dyno publish wrote")
    contents: Contents = {}
    strange: list[str] = []
    try:
        for path in sorted(folder.rglob("*")):
            name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
            if stat.S_ISREG(mode):
                contents[name] = path.read_bytes()
            elif not stat.S_ISDIR(mode):
                strange.append(name)
    except OSError as error:
        told = f"cannot read {error.filename or folder}: {error.strerror or error}"
        raise UserError(told, "look at its rights") from None
    return contents, strange
