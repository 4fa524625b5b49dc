"""What each worker of gunicorn loads: Keystone, which then tells what it runs with and where its time goes.

Keystone's own interpreter runs this file in its folder. A worker tells its settings in `told-PID`, a name
and a value in a line, once it has loaded. In `spent-PID` it keeps three doubles: how many requests it has
had, for how many seconds it was busy with them, and for how many of these it waited for the database.
"""

import mmap
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import parse_qs, urlsplit

os.environ["OS_KEYSTONE_CONFIG_FILES"] = str(Path(__file__).with_name("keystone.conf"))
# Keystone would take the arguments of gunicorn for its own.
sys.argv[1:] = []
application = import_module("keystone.wsgi.api").application
SPENT_BYTES = 3 * 8


class WorkerSpent:
    """What this worker has spent, in a file that others read meanwhile."""

    def __init__(self) -> None:
        making = Path(f"spent-{os.getpid()}.making")
        making.write_bytes(bytes(SPENT_BYTES))
        with making.open("r+b") as file:
            self._totals = memoryview(mmap.mmap(file.fileno(), SPENT_BYTES)).cast("d")
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


def settings(options: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, str]]:
    """All settings by section and name, as text; those that have no value are left out."""
    for name in options:
        value = options[name]
        if isinstance(value, Mapping) and not section and not isinstance(value, dict):
            yield from settings(value, f"{name}.")
        elif value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{section or 'DEFAULT.'}{name}", text.replace("\n", " ")


def told() -> Iterator[tuple[str, str]]:
    """The packages that this worker can load, the database that it reaches, and its settings."""
    configured = import_module("keystone.conf").CONF
    yield from ((f"package.{one.name}", one.version) for one in distributions() if one.name)
    yield "server", parse_qs(urlsplit(configured.database.connection).query)["unix_socket"][0]
    yield from settings(configured)


_spent = WorkerSpent()
_worker, _connection = import_module("gunicorn.workers.sync"), import_module("pymysql.connections")
_worker.SyncWorker.handle = _spent.serving(_worker.SyncWorker.handle)
_connection.Connection._read_bytes = _spent.asking(_connection.Connection._read_bytes)
_making = Path(f"told-{os.getpid()}.making")
_making.write_text("".join(f"{name} = {value}\n" for name, value in told()))
_making.rename(_making.with_suffix(""))
