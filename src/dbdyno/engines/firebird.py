"""All that is known of Firebird, embedded: the engine is a library inside the load process.

What a server would have as processes and sockets, an embedded engine has as a folder: its configuration,
plug-ins, lock files and log. Every trial gets one of its own, laid out as an installation of Firebird is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines import firebird_file
from dbdyno.engines.base import Ask, HugePages
from dbdyno.engines.server import how_it_ended, tail
from dbdyno.engines.values import FALSE, TRUE, as_text, same_value
from dbdyno.errors import EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import die_with_parent
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian, path, wheel
from dbdyno.obtain.installation import Installation, Offer, covers
from dbdyno.records.record import Reading
from dbdyno.study.reference import Reference

WHEEL = "firebird-embedded"
CLIENT = "libfbclient.so.2"
TOMMATH = "libtommath.so.1"
RECIPE = debian.Recipe(
    engine="libtommath",
    packages=("libtommath1",),
    server="libtommath1",
    binary=f"usr/lib/x86_64-linux-gnu/{TOMMATH}",
    # The oldest suite that has it: the library then runs on the C library of every newer host.
    suites={"1.2": "bookworm"},
    without=("libc6",),
)
"""The one library that the wheel expects of its host."""

HOST_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib64", "/usr/local/lib")
DATABASE = "dyno.fdb"
ATTACH_TIMEOUT_S = 120.0

ATTRIBUTES = {
    "page_size": "MON$PAGE_SIZE",
    "page_buffers": "MON$PAGE_BUFFERS",
    "forced_writes": "MON$FORCED_WRITES",
    "sweep_interval": "MON$SWEEP_INTERVAL",
    "reserve_space": "MON$RESERVE_SPACE",
}
"""Attributes that stand in the database file itself, and where the running engine shows them."""

ALARMING = re.compile(
    r"error|corrupt|bugcheck|wrong|invalid|unable|cannot|shutdown|crash|missing", re.IGNORECASE
)


@dataclass
class Embedded:
    """The engine ready to be loaded: a database file, and the environment that the load process needs."""

    url: str
    version: str
    ready_s: float
    driver_environment: Mapping[str, str]
    log_path: Path
    running: bool = True
    process_ids: tuple[int, ...] = ()

    def alive(self) -> bool:
        return self.running

    def log(self) -> str:
        return tail(self.log_path)

    def log_problems(self) -> list[str]:
        return _problems(self.log())

    def stop(self, timeout_s: float = 30.0) -> None:
        """Nothing runs outside the load process; what it held is free when that ends."""
        self.running = False

    def kill(self) -> None:
        self.running = False


class Firebird:
    """Firebird 5 from its wheel: no server, no root, no network."""

    name = "firebird"
    title = "Firebird"
    embedded = True
    raw_file = DATABASE
    creation_settings = frozenset({"page_size", "reserve_space"})
    loading_settings: Mapping[str, Level] = {}

    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            client = path.file(reference.path, CLIENT)
            version = _version_below(client)
        else:
            packaged, client = wheel.file(WHEEL, CLIENT)
            version = ".".join(packaged.split(".")[:3])
        if not covers(reference.version, version):
            raise EngineMissing(
                f"firebird@{reference.version} is not on this machine; Firebird {version} is",
                f"`pip install '{WHEEL}=={reference.version}.*'`",
            )
        if _tommath() is None:
            raise EngineMissing(
                f"Firebird {version} needs {TOMMATH}, which this machine lacks",
                "`dyno engines fetch firebird` obtains it without root; or `apt-get install libtommath1`",
            )
        engine = client.parent / "plugins/libEngine13.so"
        return Installation(
            engine=self.name,
            version=version,
            origin=f"{client.parent}",
            prefix=client.parent,
            command=(),
            digest=path.digest(engine if engine.is_file() else client),
        )

    def offers(self) -> list[Offer]:
        try:
            here = self.locate(Reference(self.name))
        except EngineMissing as missing:
            return [Offer(self.name, "5", missing.message, present=False, command="firebird@5")]
        return [Offer(self.name, here.version, here.origin, present=True)]

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        if _tommath() is None:
            debian.fetch(RECIPE, mirror=mirror, tell=tell)
        return self.locate(Reference(self.name, version))

    def settings(self, installation: Installation) -> frozenset[str]:
        return frozenset(_parameters(installation)) | frozenset(ATTRIBUTES)

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        require_disk(data.parent, 50_000_000, "a Firebird database")
        data.mkdir(mode=0o700)
        root = data / "root"
        try:
            environment = _lay_out(installation, root, {})
            creation = {name: level for name, level in settings.items() if name in self.creation_settings}
            _carry_out(root, environment, data / DATABASE, creation, create=True)
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise
        shutil.rmtree(root)

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> Embedded:
        database = data / DATABASE
        if not (database.is_file() or database.is_block_device()):
            raise UserError(f"{data} holds no {DATABASE}", "make a data directory with `initialise` first")
        self._refuse_unknown(installation, settings)
        root = runtime / "firebird"
        shutil.rmtree(root, ignore_errors=True)
        parameters = {name: level for name, level in settings.items() if name not in ATTRIBUTES}
        environment = _lay_out(installation, root, parameters)
        attributes = {
            name: level
            for name, level in settings.items()
            if name in ATTRIBUTES and name not in self.creation_settings
        }
        ready_s = _carry_out(root, environment, database, attributes, create=False)
        library = quote(str(root / "lib" / CLIENT), safe="/")
        return Embedded(
            url=f"firebird://{quote(str(database), safe='/')}?library={library}",
            version=installation.version,
            ready_s=ready_s,
            driver_environment={**launch.environment, **environment},
            log_path=root / "firebird.log",
        )

    def _refuse_unknown(self, installation: Installation, settings: Mapping[str, Level]) -> None:
        # Firebird itself passes over a parameter that it does not know.
        known = self.settings(installation)
        for name in settings:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean `{near[0]}`?" if near else "see firebird.conf for what there is"
                raise ServerFailed(f"Firebird {installation.version} has no setting `{name}`", hint)

    def huge_pages(
        self, _installation: Installation, _settings: Mapping[str, Level], _page_bytes: int
    ) -> HugePages | None:
        """It allocates its cache as ordinary memory."""
        return None

    def read_settings(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        readings: dict[str, Reading] = {}
        rows = ask("SELECT TRIM(RDB$CONFIG_NAME), RDB$CONFIG_VALUE FROM RDB$CONFIG")
        for name, value in ((str(row[0]).strip(), row[1]) for row in rows):
            if name in names:
                source = f"SELECT RDB$CONFIG_VALUE FROM RDB$CONFIG WHERE RDB$CONFIG_NAME = '{name}'"
                readings[name] = Reading(value="" if value is None else str(value), source=source)
        row = ask(f"SELECT {', '.join(ATTRIBUTES.values())} FROM MON$DATABASE")[0]
        for (name, column), value in zip(ATTRIBUTES.items(), row, strict=True):
            if name in names:
                readings[name] = Reading(value=_whole(value), source=f"SELECT {column} FROM MON$DATABASE")
        return readings

    def same(self, name: str, requested: Level, effective: str) -> bool:
        return same_value(requested, effective)

    def exercised(
        self, _name: str, _before: Mapping[str, float], _after: Mapping[str, float]
    ) -> Reading | None:
        """Nothing tells: see `status`."""
        return None

    def status(self, _ask: Ask) -> dict[str, float]:
        """None. The counters of an embedded database begin anew when its last attachment ends, which is
        before anyone could read them after a load."""
        return {}

    def view(self, _gained: Mapping[str, float]) -> dict[str, float]:
        return {}


def _whole(value: str | float | None) -> str:
    return str(int(value)) if isinstance(value, float) else str(value)


def _tommath() -> Path | None:
    """The library on this host, or the copy that was fetched."""
    for folder in HOST_LIBRARIES:
        for found in (*Path(folder).glob(TOMMATH), *Path(folder).glob(f"*-linux-gnu*/{TOMMATH}")):
            return found
    for copy in debian.fetched(RECIPE.engine):
        found = copy.prefix / RECIPE.binary
        if found.is_file():
            return found
    return None


def _version_below(client: Path) -> str:
    # The library does not tell its version without being loaded; the engine's plug-in carries it as text.
    engine = client.parent.parent / "plugins/libEngine13.so"
    text = engine.read_bytes() if engine.is_file() else client.read_bytes()
    found = re.search(rb"[LW]I-[VT](\d+\.\d+\.\d+)\.", text)
    return found[1].decode() if found else "5"


def _parameters(installation: Installation) -> set[str]:
    """The parameters that this build's own firebird.conf names; defaults stand there as comments."""
    text = (installation.prefix / "firebird.conf").read_text(errors="replace")
    return set(re.findall(r"^#?([A-Z][A-Za-z0-9]+)\s*=", text, re.MULTILINE))


def _lay_out(installation: Installation, root: Path, parameters: Mapping[str, Level]) -> dict[str, str]:
    """Makes a private installation at `root` out of links, and returns the environment that leads there.

    The folders are real, because the libraries look for each other in `$ORIGIN/../lib`, which a linked
    folder would lead out of `root`.
    """
    prefix, tommath = installation.prefix, _tommath()
    if tommath is None:
        raise EngineMissing(f"{TOMMATH} is gone", "`dyno engines fetch firebird` obtains it")
    for folder in ("lib", "plugins", "intl", "lock", "temporary"):
        (root / folder).mkdir(parents=True)
    for library in (*prefix.glob("lib*.so*"), *prefix.glob("lib/lib*.so*")):
        (root / "lib" / library.name).symlink_to(library)
    (root / "lib" / TOMMATH).unlink(missing_ok=True)
    (root / "lib" / TOMMATH).symlink_to(tommath)
    for folder in ("plugins", "intl"):
        for entry in (prefix / folder).iterdir():
            (root / folder / entry.name).symlink_to(entry)
    for name in ("tzdata", "firebird.msg", "plugins.conf"):
        if (prefix / name).exists():
            (root / name).symlink_to(prefix / name)
    lines = [f"{name} = {_as_parameter(level)}" for name, level in parameters.items()]
    (root / "firebird.conf").write_text("\n".join(lines) + "\n")
    return {
        "FIREBIRD": str(root),
        "FIREBIRD_LOCK": str(root / "lock"),
        "FIREBIRD_TMP": str(root / "temporary"),
    }


def _as_parameter(level: Level) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _carry_out(
    root: Path,
    environment: Mapping[str, str],
    database: Path,
    attributes: Mapping[str, Level],
    *,
    create: bool,
) -> float:
    """Creates or attaches the database with these attributes; the seconds that took. Raises ServerFailed."""
    request = {
        "library": str(root / "lib" / CLIENT),
        "database": str(database),
        "create": create,
        "attributes": _as_attributes(attributes),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", firebird_file.__file__, json.dumps(request)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=ATTACH_TIMEOUT_S,
            preexec_fn=die_with_parent(),
        )
    except subprocess.TimeoutExpired:
        raise ServerFailed(f"Firebird did not open {database} within {ATTACH_TIMEOUT_S:g} s") from None
    log = tail(root / "firebird.log")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise ServerFailed(
            f"Firebird {how_it_ended(done.returncode)} while it opened {database.name}",
            _hint(done.stderr),
            f"{log}{done.stderr}",
        ) from None
    if answer["error"]:
        verb = "make" if create else "open"
        log = f"{log}\n{answer['error']}".strip()
        raise ServerFailed(f"Firebird could not {verb} {database.name}: {answer['error']}", _hint(log), log)
    return float(answer["attach_s"])


def _as_attributes(attributes: Mapping[str, Level]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name, level in attributes.items():
        text = as_text(level).lower()
        if text in TRUE | FALSE and name in ("forced_writes", "reserve_space"):
            number = int(text in TRUE)
        elif re.fullmatch(r"\d+", text):
            number = int(text)
        else:
            raise ServerFailed(
                f"Firebird's `{name}` cannot be {level!r}", "give a whole number, or true and false"
            )
        if name == "reserve_space":
            numbers["no_reserve"] = 1 - number
        else:
            numbers[name] = number
    return numbers


def _problems(log: str) -> list[str]:
    """firebird.log has a head line (host, time) and then indented text per entry."""
    entries = re.split(r"\n(?=\S)", log)
    texts = [" ".join(line.strip() for line in entry.splitlines()[1:] if line.strip()) for entry in entries]
    return [text for text in texts if ALARMING.search(text)]


def _hint(text: str) -> str:
    hints = (
        (r"No space left|disk full", "the disk is full: make room below the data directory"),
        (r"cannot open shared object", "`dyno engines fetch firebird` obtains what is missing"),
        (r"(?i)page size|size of .*page", "page_size is 4096, 8192, 16384 or 32768"),
        (r"Permission denied", "the database must belong to the user that runs Dyno"),
        (r"is not a valid database|unsupported on-disk structure", "this file was made by another Firebird"),
    )
    return next((hint for pattern, hint in hints if re.search(pattern, text)), "look at the end of its log")
