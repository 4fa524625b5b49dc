"""What a store did not take: records in a file of this user's, on disk, until the store takes them.

One file for each store, found by where the store is, so that whoever opens that store next takes them up. A
lock on the file lets one process at a time add to it or empty it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dbdyno.errors import DynoError, remedy
from dbdyno.host import paths
from dbdyno.host.syncing import sync_folder

Waiting = tuple[str, int, str, int, str, str]
"""A row of the store's records: run, trial, variant, block, outcome, document."""


class Spool:
    """The records that wait for a store at `place`. Nothing is made before one has to wait."""

    def __init__(self, place: str) -> None:
        digest = hashlib.sha256(place.encode()).hexdigest()[:24]
        self.path = paths.state_place() / "spool" / f"{digest}.jsonl"

    @property
    def empty(self) -> bool:
        try:
            return self.path.stat().st_size == 0
        except FileNotFoundError:
            return True

    def keep(self, row: Waiting) -> None:
        """Adds a record, on disk when this returns. Raises DynoError where it cannot be written."""
        paths.state()
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            with self._locked() as descriptor:
                # Behind a line that a power cut left torn, this one begins anew.
                text = f"\n{json.dumps(row)}\n".encode()
                end_bytes = os.fstat(descriptor).st_size
                written_bytes = 0
                try:
                    while written_bytes < len(text):
                        part = text[written_bytes:]
                        written_bytes += os.pwrite(descriptor, part, end_bytes + written_bytes)
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, end_bytes)
                    raise
            sync_folder(self.path.parent)
        except OSError as error:
            raise DynoError(
                f"a record cannot be kept in {self.path} either: {error.strerror}",
                f"{remedy(error) or 'look at that folder'}, or point XDG_STATE_HOME at another disk",
            ) from None

    @contextmanager
    def taken(self) -> Iterator[Sequence[Waiting]]:
        """All that wait, in their order. They are removed at the end, unless that is a failure."""
        if self.empty:
            yield ()
            return
        with self._locked() as descriptor:
            text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            yield [row for line in text.splitlines() if (row := _row(line)) is not None]
            os.ftruncate(descriptor, 0)
            os.fsync(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _row(line: bytes) -> Waiting | None:
    """A line's record; None for what is no whole line."""
    try:
        run, trial, variant, block, outcome, document = json.loads(line)
    except ValueError:
        return None
    return str(run), int(trial), str(variant), int(block), str(outcome), str(document)
