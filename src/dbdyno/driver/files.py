"""The files that a workload reads, as the driver finds them.

`review` says what can be known of a workload without a server: the mistakes in its files, and the SQL in
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.driver.load import Flaw
from dbdyno.errors import DriverFailed
from dbdyno.frozen import Frozen, Level


class Review(Frozen):
    """The mistakes of a workload's files, and all SQL in them that is the user's own, each statement behind
    its place; empty where there is none that a server could judge before a run."""

    mistakes: tuple[Flaw, ...]
    own_sql: str


def review(workload: str, options: Mapping[str, Level], folder: Path) -> Review:
    """Reads a workload's files as a run would; relative paths count from `folder`. Raises DriverFailed for
    options that are no options."""
    try:
        found = _driver.review(workload, json.dumps(dict(options)), str(folder))
    except _driver.DriverError as error:
        raise DriverFailed(error.message, error.hint, error.kind) from None
    return Review.model_validate_json(found)


class FileRead(Frozen):
    """A file that a workload reads: its `name`, which counts from the job's folder where it is relative, and
    the `path` that this leads to. `option` leads to it, by itself or through a file that names it at the
    place `named_at`."""

    name: str
    path: str
    option: str
    named_at: str


def files_read(workload: str, options: Mapping[str, Level], folder: Path) -> tuple[FileRead, ...]:
    """The files that a workload with these options reads, in an order that does not change; none for options
    that name none, or that the driver refuses."""
    try:
        found = json.loads(_driver.files(workload, json.dumps(dict(options)), str(folder)))
    except _driver.DriverError:
        return ()
    return tuple(FileRead.model_validate(one) for one in found)
