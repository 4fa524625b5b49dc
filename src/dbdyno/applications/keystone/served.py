"""What each worker of gunicorn loads: Keystone, which then tells what it runs with and where its time goes.

Keystone's own interpreter runs this file, which Dyno copies and never imports. The variable DYNO_ASKED names
the settings that are told, with spaces between.
"""

import json
import mmap
import os
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from time import perf_counter
from typing import Any

application = import_module("keystone.wsgi.api").application
TOTALS_BYTES = 3 * 8


class WorkerSpent:
    """What this worker has spent, in a file that Dyno reads meanwhile: how many requests it has had, for how
    many seconds it was busy with them, and for how many of these it waited for the database."""

    def __init__(self) -> None:
        making = Path(f"spent-{os.getpid()}.making")
        making.write_bytes(bytes(TOTALS_BYTES))
        with making.open("r+b") as file:
            self._totals = memoryview(mmap.mmap(file.fileno(), TOTALS_BYTES)).cast("d")
        self._database_s = 0.0
        making.rename(making.with_suffix(""))

    def serving(self, handle: Callable[..., Any]) -> Callable[..., Any]:
        """Times a request from its connection's acceptance to its end."""

        @wraps(handle)
        def timed(*arguments: Any) -> Any:
            self._database_s, began_s = 0.0, perf_counter()
            try:
                return handle(*arguments)
            finally:
                self._totals[0] += 1.0
                self._totals[1] += perf_counter() - began_s
                self._totals[2] += self._database_s

        return timed

    def asking(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """Times how long an answer of the database is waited for. What is made of its bytes is the
        application's own work."""

        @wraps(read)
        def timed(*arguments: Any) -> Any:
            began_s = perf_counter()
            try:
                return read(*arguments)
            finally:
                self._database_s += perf_counter() - began_s

        return timed


def _setting(name: str) -> object:
    section, _, key = name.rpartition(".")
    options = import_module("keystone.conf").CONF
    holder = options if section in ("", "DEFAULT") else getattr(options, section, None)
    return getattr(holder, key, None)


_spent = WorkerSpent()
_worker, _connection = import_module("gunicorn.workers.sync"), import_module("pymysql.connections")
_worker.SyncWorker.handle = _spent.serving(_worker.SyncWorker.handle)
_connection.Connection._read_bytes = _spent.asking(_connection.Connection._read_bytes)
_told = {
    "packages": {one.name.lower(): one.version for one in distributions() if one.name},
    "settings": {name: _setting(name) for name in os.environ["DYNO_ASKED"].split()},
}
_written = Path(f"told-{os.getpid()}.making")
_written.write_text(json.dumps(_told, default=str))
_written.rename(_written.with_suffix(".json"))
