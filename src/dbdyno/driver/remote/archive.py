"""The one file that a load host needs: the driver and the child that speaks for it, known by its hash."""

from __future__ import annotations

import hashlib
import io
import platform
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.driver import _driver, child
from dbdyno.driver.remote.boot import CHILD, MACHINE, MODULE

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that an archive can hold: the same driver makes the same file, whenever it is made."""


@dataclass(frozen=True)
class Archive:
    """The file's bytes, and their SHA-256 in hexadecimal digits."""

    content: bytes
    digest: str


@cache
def archive() -> Archive:
    """The file of the driver that this process has loaded."""
    members = {
        MACHINE: platform.machine().encode(),
        CHILD: Path(child.__file__).read_bytes(),
        MODULE: Path(_driver.__file__).read_bytes(),
    }
    written = io.BytesIO()
    # Not packed, because another version of the packer would give the same driver another hash.
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name, EPOCH), content)
    content = written.getvalue()
    return Archive(content, hashlib.sha256(content).hexdigest())
