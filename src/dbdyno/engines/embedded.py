"""What embedded engines share: they live in the load process, which is then the server under test.

There is no process to start and none to stop. The load process gets what the layers ask for the server's, and
the environment that leads the engine to its files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from dbdyno.engines.engine import Ask, HugePageSettings
from dbdyno.engines.server import tail
from dbdyno.errors import ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.records.record import Reading
from dbdyno.user_data.folder import copy_folder


@dataclass
class EmbeddedServer:
    """A database file that the load process opens. An engine without `log_path` keeps no log: its errors come
    back to the caller.
    """

    url: str
    version: str
    driver_environment: Mapping[str, str]
    driver_folders: tuple[Path, ...]
    ready_s: float = 0.0
    log_path: Path | None = None
    problems: Callable[[str], list[str]] = lambda _log: []
    running: bool = True
    process_ids: tuple[int, ...] = ()

    def alive(self) -> bool:
        return self.running

    def log(self) -> str:
        return tail(self.log_path) if self.log_path else ""

    def log_problems(self) -> list[str]:
        return self.problems(self.log())

    def stop(self, timeout_s: float = 30.0) -> None:
        """Nothing runs outside the load process; what it held is free when that ends."""
        self.running = False

    def kill(self) -> None:
        self.running = False


def require_database(database: Path) -> None:
    """Raises UserError where there is no database: neither a file nor a device."""
    if not (database.is_file() or database.is_block_device()):
        raise UserError(
            f"{database.parent} holds no {database.name}", "make a data directory with `initialise` first"
        )


def refuse_unknown(settings: Iterable[str], known: frozenset[str], refusal: str, otherwise: str) -> None:
    """Raises ServerFailed, `refusal` and the name, for a setting that the engine would silently pass over."""
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else otherwise
            raise ServerFailed(f"{refusal} `{name}`", hint)


def huge_pages(_settings: Mapping[str, Level], _page_bytes: int) -> HugePageSettings | None:
    """None: these engines allocate their cache as ordinary memory."""
    return None


def held(_ask: Ask) -> dict[str, float]:
    """Nothing: whoever asks from another process is told of that process."""
    return {}


def exercised(_name: str, _before: Mapping[str, float], _after: Mapping[str, float]) -> Reading | None:
    """None: their counters belong to a connection, and end with it."""
    return None


def unmoved(_name: str, _before: Mapping[str, float], _after: Mapping[str, float]) -> str:
    """Empty, for the same reason."""
    return ""


def bring_in_file(source: Path, database: Path) -> None:
    """Copies a database's file to where a trial has it; nothing is left of a copy that failed."""
    database.parent.mkdir(mode=0o700)
    try:
        copy_folder(source, database)
    except BaseException:
        shutil.rmtree(database.parent, ignore_errors=True)
        raise
