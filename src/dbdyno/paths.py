"""Where Dyno keeps its files, after the XDG Base Directory Specification 0.8. Each function makes the
folder it names.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from dbdyno.errors import DynoError

SOCKET_PATH_BYTES = 107
"""What `sockaddr_un.sun_path` holds on Linux, without its closing zero (unix(7))."""

LONGEST_RUNTIME_BYTES = 60
"""A runtime folder longer than this leaves too little of the socket's 107 bytes for a trial's own folder."""


def data() -> Path:
    """The store and the reports: what a user would miss."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache() -> Path:
    """Fetched engines and pristine data: what can be made again."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state() -> Path:
    """The journal: what is needed to put the host back."""
    return _folder("XDG_STATE_HOME", ".local/state")


def runtime() -> Path:
    """Sockets and logs of running servers: private to this user, and short, because a socket's path is
    limited.
    """
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(base) / "dyno"
    usable = Path(base).is_absolute() and os.access(base, os.W_OK | os.X_OK)
    if not usable or len(os.fsencode(folder)) > LONGEST_RUNTIME_BYTES:
        folder = Path(tempfile.gettempdir()) / f"dyno-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_private(folder)
    return folder


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    # The specification: a relative path is invalid and must be ignored.
    root = Path(base) if Path(base).is_absolute() else Path.home() / default
    folder = root / "dyno"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynoError(
            f"cannot make {folder}: {error.strerror}", f"set {variable} to a folder you can write"
        ) from None
    return folder


def _require_private(folder: Path) -> None:
    """Anyone may make a folder under /tmp: one that is not ours, or open to others, must not hold our
    sockets.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise DynoError(
            f"{folder} belongs to someone else", "remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    if status.st_mode & 0o077:
        folder.chmod(0o700)
