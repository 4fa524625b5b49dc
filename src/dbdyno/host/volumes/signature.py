"""What file system lies on a device, and whether Dyno put it there.

A label says nothing: anybody may choose it. So Dyno keeps the UUID of each file system that it puts on a
named device, in the folder of its own on this host, which nobody else may write.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dbdyno.host import paths

NOTHING, MISSING = 2, 127
"""What blkid ends with where there is no signature; and what a shell does where there is no blkid."""
PUT = "volumes"


def probed(place: Path) -> tuple[int, Mapping[str, str]]:
    """What blkid finds on a device or in an image, and what it ended with."""
    command = ["blkid", "--probe", "--output", "export", str(place)]
    environment = {**os.environ, "LC_ALL": "C", "PATH": path_with_sbin()}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except FileNotFoundError:
        return MISSING, {}
    return done.returncode, dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def note_put(image: Path) -> None:
    """Notes that an image's file system is about to be put on a device; durably, because the device may
    outlast this Dyno."""
    _, found = probed(image)
    uuid = found.get("UUID", "")
    if not uuid or is_put(uuid):
        return
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(paths.host() / PUT, how, 0o600)
    try:
        os.write(descriptor, f"{uuid}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_put(uuid: str) -> bool:
    """Whether Dyno has put the file system with this UUID on a device."""
    with suppress(FileNotFoundError):
        return uuid in (paths.host() / PUT).read_text().split()
    return False


def path_with_sbin() -> str:
    """Where the makers of file systems lie; a user's own PATH often leaves it out."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
