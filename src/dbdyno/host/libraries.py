"""Shared libraries: those of this host, and those that a process holds."""

from __future__ import annotations

import os
from pathlib import Path

from dbdyno.host import kernel_files

FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)


def find(name: str) -> Path | None:
    """The library of that file name on this host, links resolved; None when it is not installed."""
    paths = (folder / name for folder in _folders())
    return next((path.resolve() for path in paths if path.exists()), None)


def found(pattern: str) -> bool:
    """Whether this host has a library whose file name matches the pattern."""
    return any(any(folder.glob(pattern)) for folder in _folders())


def _folders() -> tuple[Path, ...]:
    machine = os.uname().machine
    return tuple(Path(folder.format(machine=machine)) for folder in FOLDERS)


def mapped(process_id: int) -> frozenset[Path]:
    """The files that a process has mapped into its memory; what was removed since is ` (deleted)` by name."""
    fields = (
        line.split(maxsplit=5)
        for line in kernel_files.text(f"/proc/{process_id}/maps", may_be_empty=True).splitlines()
    )
    return frozenset(Path(found[5]) for found in fields if len(found) == 6 and found[5].startswith("/"))
