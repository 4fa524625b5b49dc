"""The files that a study refers to, as they were when it was read."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dbdyno.frozen import Frozen, absent
from dbdyno.passwords import without_passwords

TEXT_BYTES_MOST = 1 << 20
"""Of a larger file, and of one that is no text in UTF-8, a run keeps the hash alone."""


class FileKind(StrEnum):
    """What a file is to a study."""

    WORKLOAD = "workload"
    PATCH = "patch"
    RECIPE = "recipe"
    VECTORS = "vectors"
    FRONT = "front"
    SCHEDULE = "schedule"


class StudyFile(Frozen):
    """A file that a study refers to, as it was read from `place`. `path` counts from the study's folder where
    the study names it so. A file that is too large to be kept, or no text, has no `text`."""

    kind: FileKind
    path: str
    place: str
    size_bytes: int
    digest: str
    text: str | None = absent(None)

    @property
    def meaning(self) -> str:
        """What tells it from others: of TOML its values, because a comment asks nothing; else its content."""
        if self.text is not None and self.path.endswith(".toml"):
            with contextlib.suppress(tomllib.TOMLDecodeError, RecursionError):
                return json.dumps(tomllib.loads(self.text), default=str)
        return self.digest

    @property
    def weights(self) -> dict[str, int]:
        """How often a workload's file has each of its transactions, by name; empty for another file."""
        if self.text is None or not self.path.endswith(".toml"):
            return {}
        with contextlib.suppress(tomllib.TOMLDecodeError, RecursionError):
            transactions = tomllib.loads(self.text).get("transactions", [])
            return {str(one.get("name")): int(one.get("weight", 1)) for one in transactions}
        return {}


@dataclass(frozen=True)
class NamedFile:
    """A file that a study names, at the place `named_at` where another file does. `option` is the workload's
    option that leads to it."""

    kind: FileKind
    path: str
    option: str = ""
    named_at: str = ""


def folder_of(path: str) -> Path:
    """The folder that paths in a study count from: that of its file, or where the command was given if the
    study comes from a pipe."""
    file = Path(os.path.abspath(path))  # noqa: PTH100 - links stay
    comes_from_pipe = file.is_relative_to("/proc") or file.is_relative_to("/dev")
    return Path.cwd() if comes_from_pipe else file.parent


def digest_of_file(place: Path) -> str:
    """The SHA-256 of a file's content. Raises OSError."""
    with place.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def read_file(named: NamedFile, folder: Path) -> StudyFile:
    """A file that a study in a folder names. Raises OSError for what is no file that can be read."""
    place = Path(os.path.normpath(folder / Path(named.path).expanduser()))
    status = place.stat()
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return StudyFile(
        kind=named.kind,
        path=named.path if Path(named.path).is_absolute() else os.path.normpath(named.path),
        place=str(place),
        size_bytes=status.st_size,
        digest=digest_of_file(place),
        text=_text(place) if named.kind is not FileKind.VECTORS else None,
    )


def _text(place: Path) -> str | None:
    """The text of a file that is short enough, without passwords; None where it is none."""
    with place.open("rb") as opened:
        content = opened.read(TEXT_BYTES_MOST + 1)
    if len(content) > TEXT_BYTES_MOST or b"\0" in content:
        return None
    try:
        return without_passwords(content.decode())
    except UnicodeDecodeError:
        return None
