"""The files that a workload reads, as the driver finds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.frozen import Frozen, Level


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
