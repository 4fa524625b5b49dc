"""Values of the running kernel under /sys and /proc/sys: read, set through the journal, restored.

A value is set only after the journal holds what it was. Files that offer a choice (`always [madvise] never`)
are read as the word in brackets.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.errors import Blocked
from dbdyno.host.journal import Journal, undoes

_claimed: dict[Path, int] = {}
"""The locks of the values that this process has set."""

_HOMES = (Path("/sys"), Path("/proc/sys"))
"""The only trees in which Dyno ever sets or restores a kernel value."""


def read(path: Path) -> str:
    """The value in force. Raises OSError when it cannot be read."""
    text = path.read_text().strip()
    opened, closed = text.find("["), text.find("]")
    return text[opened + 1 : closed] if 0 <= opened < closed else text


def choices(path: Path) -> tuple[str, ...]:
    """What a file with a choice offers, in the kernel's order."""
    return tuple(path.read_text().replace("[", " ").replace("]", " ").split())


def set_value(journal: Journal, path: Path, value: str, factor: str) -> str:
    """Sets a value until the journal's scope ends and returns what the kernel then says it is.

    Raises Blocked, for `factor`, when the kernel or the lack of a right refuses, or when another Dyno has
    set it and will restore it.
    """
    try:
        claimed_here = _claim(path, factor)
        before = read(path)
        if before == value:
            if claimed_here:
                _let_go(path)
            return before
        journal.note("kernel_value", path=str(path), before=before)
        _write(path, value)
        return read(path)
    except PermissionError:
        raise Blocked(factor, f"{path} may be set by root only", "run dyno as root for this level") from None
    except FileNotFoundError:
        raise Blocked(factor, f"this kernel has no {path}", "use a kernel or device that offers it") from None
    except OSError as error:
        raise Blocked(factor, f"the kernel refused {value!r} for {path}: {error.strerror}") from None


def _claim(path: Path, factor: str) -> bool:
    """Locks the value's own file until it is restored: every Dyno of the host, whoever runs it, sees that
    lock. Returns whether it was free of a claim of this process's own.
    """
    if path in _claimed:
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Blocked(
            factor, f"another dyno has set {path} for its own trial", "wait until it ends"
        ) from None
    _claimed[path] = descriptor
    return True


def _let_go(path: Path) -> None:
    if path in _claimed:
        os.close(_claimed.pop(path))


@undoes("kernel_value")
def _put_back(entry: Mapping[str, Any]) -> None:
    """Puts a value back. A device that is gone took its values with it."""
    path = Path(entry["path"])
    if not any(path.is_relative_to(home) for home in _HOMES) or ".." in path.parts:
        raise ValueError("not a kernel value, so it is left alone")
    if path.exists() and read(path) != entry["before"]:
        _write(path, str(entry["before"]))
    _let_go(path)


def _write(path: Path, value: str) -> None:
    # No buffering: the kernel's refusal must come from this write, not from a later close.
    with path.open("wb", buffering=0) as file:
        file.write(value.encode())
