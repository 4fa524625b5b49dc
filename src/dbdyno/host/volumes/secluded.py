"""A mount namespace for one program that may write to one file, and sees no device of the host."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from dbdyno.host.namespaces import (
    CLONE_NEWNS,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    mount,
    set_attributes,
    unshare,
)

SEEN = Path("/dev/volume.img")
"""Where the program finds its file."""
HARMLESS = ("null", "zero", "random", "urandom")
MAY_BE_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL)


def seclude(file: Path) -> Callable[[], None]:
    """For `before_exec`: the program sees `file` as SEEN, in a /dev that holds no device but null, zero and
    random, and all else read-only (mount_setattr(2), Linux 5.12). The step raises OSError without the right.
    """
    own = os.fsencode(file.resolve())

    def enter() -> None:
        unshare(CLONE_NEWNS)
        mount(b"none", b"/", None, MS_REC | MS_PRIVATE)
        # Opened before the folder is covered, and bound from there.
        held = {os.fsencode(SEEN): os.open(own, os.O_PATH)}
        held |= {f"/dev/{name}".encode(): os.open(f"/dev/{name}", os.O_PATH) for name in HARMLESS}
        mount(b"tmpfs", b"/dev", b"tmpfs", 0)
        for point, descriptor in held.items():
            os.close(os.open(point, os.O_CREAT | os.O_WRONLY, 0o600))
            mount(f"/proc/self/fd/{descriptor}".encode(), point, None, MS_BIND)
            os.close(descriptor)
        try:
            set_attributes(b"/", MOUNT_ATTR_RDONLY, 0, recursive=True)
            set_attributes(os.fsencode(SEEN), 0, MOUNT_ATTR_RDONLY)
        except OSError as refused:
            # Where the kernel cannot, /dev alone is closed off.
            if refused.errno not in MAY_BE_MISSING:
                raise

    return enter
