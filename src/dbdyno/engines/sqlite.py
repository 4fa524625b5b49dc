"""All that is known of SQLite: the library is built into the driver, its settings are pragmas of each
connection.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from dbdyno.driver.query import query
from dbdyno.engines.base import Ask, HugePages
from dbdyno.engines.values import as_text, quantity, same_value
from dbdyno.errors import EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation, Offer, covers
from dbdyno.records.record import Reading
from dbdyno.study.reference import Reference

DATABASE = "dyno.sqlite"

CREATION = ("page_size", "auto_vacuum", "encoding")
PRAGMAS = frozenset(
    {
        "busy_timeout",
        "cache_size",
        "journal_mode",
        "locking_mode",
        "mmap_size",
        "synchronous",
        "temp_store",
        "wal_autocheckpoint",
        *CREATION,
    }
)
"""The pragmas that can be set: when the file is made, or by the driver on each of its connections."""

WORDS = {
    "synchronous": ("off", "normal", "full", "extra"),
    "temp_store": ("default", "file", "memory"),
    "auto_vacuum": ("none", "full", "incremental"),
}
"""Pragmas that take a word and answer with its number."""


@dataclass
class File:
    """A database file that the load process opens; there is nothing else to start."""

    url: str
    version: str
    ready_s: float = 0.0
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    process_ids: tuple[int, ...] = ()
    running: bool = True

    def alive(self) -> bool:
        return self.running

    def log(self) -> str:
        """SQLite keeps none; its errors come back to the caller."""
        return ""

    def log_problems(self) -> list[str]:
        return []

    def stop(self, timeout_s: float = 30.0) -> None:
        self.running = False

    def kill(self) -> None:
        self.running = False


class SQLite:
    """SQLite, as it is built into the driver."""

    name = "sqlite"
    title = "SQLite"
    embedded = True
    raw_file = ""
    creation_settings = frozenset(CREATION)
    loading_settings: Mapping[str, Level] = {}

    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            raise UserError("SQLite is built into the driver and has no path", 'write engine = "sqlite"')
        version = _version()
        if not covers(reference.version, version):
            raise EngineMissing(f"sqlite@{reference.version} is not here", f"the driver has SQLite {version}")
        return Installation(
            engine=self.name,
            version=version,
            origin="built into the driver",
            prefix=Path("/"),
            command=(),
            digest=version,
        )

    def offers(self) -> list[Offer]:
        return [Offer(self.name, _version(), "built into the driver", present=True)]

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        return self.locate(Reference(self.name, version))

    def settings(self, installation: Installation) -> frozenset[str]:
        return PRAGMAS

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        require_disk(data.parent, 10_000_000, "an SQLite database")
        data.mkdir(mode=0o700)
        connection = sqlite3.connect(data / DATABASE)
        try:
            for name in CREATION:
                if name in settings:
                    connection.execute(f"PRAGMA {name} = {_value(name, settings[name])}")
            # An empty file has no header yet: this writes it, and with it what was chosen.
            connection.execute("VACUUM")
        except sqlite3.Error as error:
            shutil.rmtree(data, ignore_errors=True)
            raise ServerFailed(
                f"SQLite could not make its database: {error}", "see sqlite.org/pragma"
            ) from None
        finally:
            connection.close()

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> File:
        database = data / DATABASE
        if not database.is_file():
            raise UserError(f"{data} holds no {DATABASE}", "make a data directory with `initialise` first")
        _refuse_unknown(settings)
        chosen = {name: level for name, level in settings.items() if name not in CREATION}
        pragmas = "&".join(f"{name}={quote(_value(name, level))}" for name, level in chosen.items())
        return File(
            url=f"sqlite://{quote(str(database), safe='/')}{'?' if pragmas else ''}{pragmas}",
            version=installation.version,
            driver_environment=dict(launch.environment),
        )

    def huge_pages(
        self, _installation: Installation, _settings: Mapping[str, Level], _page_bytes: int
    ) -> HugePages | None:
        """It allocates its cache as ordinary memory."""
        return None

    def read_settings(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        readings = {}
        for name in sorted(names & PRAGMAS):
            rows = ask(f"PRAGMA {name}")
            if rows and rows[0][0] is not None:
                value = rows[0][0]
                text = str(int(value)) if isinstance(value, float) else str(value)
                readings[name] = Reading(value=text, source=f"PRAGMA {name}")
        return readings

    def same(self, name: str, requested: Level, effective: str) -> bool:
        words = WORDS.get(name, ())
        wanted = _value(name, requested).lower()
        if effective.isdigit() and wanted in words:
            return words.index(wanted) == int(effective)
        return same_value(wanted, effective)

    def exercised(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
        """Its counters belong to a connection and cannot be asked for by SQL."""
        return None

    def status(self, ask: Ask) -> dict[str, float]:
        return {name: float(ask(f"PRAGMA {name}")[0][0] or 0) for name in ("page_count", "freelist_count")}

    def view(self, gained: Mapping[str, float]) -> dict[str, float]:
        # Its two counters tell of size alone.
        return {}


def _refuse_unknown(settings: Mapping[str, Level]) -> None:
    for name in settings:
        if name not in PRAGMAS:
            near = get_close_matches(name, PRAGMAS, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(sorted(PRAGMAS))}"
            raise ServerFailed(f"Dyno cannot set SQLite's `{name}`", hint)


def _value(name: str, level: Level) -> str:
    """A level as a pragma takes it: no units, and a cache's size in KiB as a negative number."""
    text = as_text(level)
    amount = quantity(text)
    if amount is None or not amount[1]:
        if not re.fullmatch(r"[-+.\w]+", text):
            raise ServerFailed(f"SQLite's `{name}` cannot be {text!r}", "give one word or number")
        return f"'{text}'" if name == "encoding" else text
    number = amount[0]
    return str(int(-number // 1024)) if name == "cache_size" else str(int(number))


def _version() -> str:
    """The library's version, asked of the library itself."""
    with TemporaryDirectory() as folder:
        return str(query(f"sqlite://{quote(folder, safe='/')}/{DATABASE}", "SELECT sqlite_version()")[0][0])
