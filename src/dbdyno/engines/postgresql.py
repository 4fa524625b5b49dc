"""All that is known of PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines import server
from dbdyno.engines.base import Ask, HugePages
from dbdyno.engines.values import View, as_text, quantity, same_value, viewed
from dbdyno.errors import EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine
from dbdyno.host.room import require_disk
from dbdyno.host.user_namespace import step_down
from dbdyno.obtain import debian, path
from dbdyno.obtain.installation import Installation, Offer, covers
from dbdyno.records.record import Reading
from dbdyno.study.reference import Reference

RECIPE = debian.Recipe(
    engine="postgresql",
    packages=("postgresql-17", "postgresql-17-pgvector"),
    server="postgresql-17",
    binary="usr/lib/postgresql/17/bin/postgres",
    suites={"17": "trixie"},
    # Accounts, prompts, service scripts, locales and certificates of an installation on the host.
    without=(
        "adduser",
        "debconf",
        "libpam-modules",
        "libpam-runtime",
        "locales",
        "netbase",
        "perl",
        "postgresql-client-17",
        "postgresql-common",
        "ssl-cert",
        "tzdata",
        "ucf",
    ),
)
VERSION = r"postgres \(PostgreSQL\) (\d+(?:\.\d+)*)"
NAMES = ("postgres",)
PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "usr/local/pgsql/bin", "usr/local/bin", "usr/bin")
ACCOUNT = "dyno"
DATABASE = "dyno"
PORT = 5432

OURS = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "log_destination",
        "log_directory",
        "log_filename",
        "logging_collector",
        "port",
        "unix_socket_directories",
        "unix_socket_group",
        "unix_socket_permissions",
    }
)
"""Settings that Dyno sets itself so that the server stays private; a study cannot vary them."""

ALARMING = re.compile(r"\b(ERROR|FATAL|PANIC|WARNING):|was terminated by signal|could not load|corrupt")
BENIGN = re.compile(r"the database system is (starting up|shutting down)|terminating connection due to admin")
BARE_UNITS = (1.0, 1024.0, 8192.0, 2.0**20, 1000.0, 60_000.0)
"""What a bare number may count: bytes, kB, pages of 8 kB, MB; milliseconds, seconds, minutes."""

COUNTERS: dict[str, tuple[str, ...]] = {
    "shared_buffers": ("blks_hit", "blks_read"),
    "effective_cache_size": ("blks_read",),
    "work_mem": ("temp_files", "temp_bytes"),
    "synchronous_commit": ("wal_sync", "wal_write"),
    "fsync": ("wal_sync", "wal_write"),
    "wal_sync_method": ("wal_sync",),
    "wal_buffers": ("wal_buffers_full",),
    "wal_compression": ("wal_fpi", "wal_bytes"),
    "full_page_writes": ("wal_fpi", "wal_bytes"),
    "max_wal_size": ("checkpoints_req", "num_requested"),
    "checkpoint_timeout": ("checkpoints_timed", "num_timed"),
    "commit_delay": ("wal_sync",),
}
OTHER_SHARED_BYTES = 32 << 20
"""Shared memory that does not grow with the buffers."""

STATUS_SQL = (
    "SELECT * FROM pg_stat_database WHERE datname = current_database()",
    "SELECT * FROM pg_stat_wal",
    "SELECT * FROM pg_stat_bgwriter",
    "SELECT * FROM pg_stat_checkpointer",
)


VIEW: View = {
    "blocks found in shared buffers": (1.0, ("blks_hit",)),
    "blocks read": (1.0, ("blks_read",)),
    "rows fetched": (1.0, ("tup_fetched",)),
    "write-ahead log, bytes": (1.0, ("wal_bytes",)),
    "write-ahead log syncs": (1.0, ("wal_sync",)),
    "waits for the log's buffers": (1.0, ("wal_buffers_full",)),
    "buffers written by back ends": (1.0, ("buffers_backend",)),
    "temporary files, bytes": (1.0, ("temp_bytes",)),
    "deadlocks": (1.0, ("deadlocks",)),
}
"""What it says of its own time, from its statistics views."""


class PostgreSQL:
    """The server on a socket in a private folder, no network. As root it runs in a user namespace of its
    own.
    """

    name = "postgresql"
    title = "PostgreSQL"
    embedded = False
    raw_file = ""
    creation_settings = frozenset({"data_checksums", "wal_segment_size"})
    loading_settings: Mapping[str, Level] = {}

    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            return _installed(path.binary(reference.path, NAMES))
        for installation in _here():
            if covers(reference.version, installation.version):
                return installation
        wanted = f"postgresql@{reference.version}" if reference.version else "postgresql"
        raise EngineMissing(f"{wanted} is not on this machine", f"`dyno engines fetch {wanted}` obtains it")

    def offers(self) -> list[Offer]:
        here = [Offer(self.name, one.version, one.origin, present=True) for one in _here()]
        return here + debian.offers(RECIPE)

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        return _unpacked(debian.fetch(RECIPE, version, mirror=mirror, tell=tell))

    def settings(self, installation: Installation) -> frozenset[str]:
        return (_parameters(installation.command) | self.creation_settings) - OURS

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        require_disk(data.parent, 150_000_000, "a PostgreSQL data directory")
        data.mkdir(mode=0o700)
        options = [
            "--no-locale",
            "--encoding=UTF8",
            "--auth=trust",
            f"--username={ACCOUNT}",
            "--no-instructions",
        ]
        command = [
            *_tool(installation, "initdb"),
            *options,
            *_creation(settings),
            "-D",
            str(data / "database"),
        ]
        done = _run(installation, command)
        if done.returncode == 0:
            done = _run(
                installation,
                [*installation.command, "--single", "-D", str(data / "database"), "postgres"],
                f"CREATE DATABASE {DATABASE};\n",
            )
        log = (done.stdout + done.stderr)[-server.LOG_BYTES :]
        if done.returncode != 0 or _problems(log):
            shutil.rmtree(data, ignore_errors=True)
            lines = [
                line for line in log.splitlines() if re.search(r"error|FATAL|ERROR|cannot|could not", line)
            ]
            reason = lines[0].strip() if lines else server.how_it_ended(done.returncode)
            raise ServerFailed(
                f"PostgreSQL could not make its data directory: {reason}", _hint(log, installation), log
            )

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> server.ServerProcess:
        if not (data / "database").is_dir():
            raise UserError(f"{data} is not a data directory of Dyno's", "make one with `initialise` first")
        socket_path = runtime / f".s.PGSQL.{PORT}"
        server.require_short(socket_path.with_name(f"{socket_path.name}.lock"))
        ours: dict[str, Level] = {
            "unix_socket_directories": str(runtime),
            "unix_socket_permissions": "0700",
            "listen_addresses": "",
            "port": PORT,
        }
        chosen = {name: level for name, level in settings.items() if name not in self.creation_settings}
        arguments = [f"--{name}={as_text(level)}" for name, level in {**ours, **chosen}.items()]
        return server.launch(
            title=f"PostgreSQL {installation.version}",
            url=f"postgresql://{ACCOUNT}@localhost/{DATABASE}?socket={quote(str(socket_path), safe='/')}",
            installation=installation,
            command=[*installation.command, "-D", str(data / "database"), *arguments],
            data=data,
            runtime=runtime,
            how=replace(launch, before_exec=(*launch.before_exec, *step_down("engine", self.title))),
            socket=socket_path,
            version_sql="SHOW server_version",
            problems=_problems,
            hint=lambda log: _hint(log, installation),
            # A fast shutdown; SIGTERM would wait for clients to leave by themselves.
            stop_signal=signal.SIGINT,
            leftovers=(socket_path, socket_path.with_name(f"{socket_path.name}.lock")),
        )

    def huge_pages(
        self, _installation: Installation, settings: Mapping[str, Level], page_bytes: int
    ) -> HugePages | None:
        """The whole shared memory: the buffers, and a tenth more for descriptors, locks and WAL buffers."""
        buffers = quantity(str(settings.get("shared_buffers", "128MB")))
        cache_bytes = int(buffers[0] if buffers else 0)
        size_bytes = int(cache_bytes * 1.1) + OTHER_SHARED_BYTES
        settings_of_pages: dict[str, Level] = {"huge_pages": "on", "huge_page_size": f"{page_bytes >> 10}kB"}
        return HugePages(settings_of_pages, size_bytes, cache_bytes)

    def read_settings(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        rows = ask("SELECT name, current_setting(name) FROM pg_settings")
        return {
            str(name): Reading(value="" if value is None else str(value), source=f"SHOW {name}")
            for name, value in rows
            if name in names
        }

    def same(self, name: str, requested: Level, effective: str) -> bool:
        if same_value(requested, effective):
            return True
        wanted, found = quantity(as_text(requested)), quantity(effective)
        if wanted is None or found is None or wanted[1] or not found[1]:
            return False
        # A bare number counts in the setting's own unit, which the text read back does not tell.
        return any(abs(wanted[0] * unit - found[0]) < 0.5 for unit in BARE_UNITS)

    def exercised(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
        counters = [one for one in COUNTERS.get(name, ()) if one in before and one in after]
        if not counters:
            return None
        changes = [f"{one} {after[one] - before[one]:+.0f}" for one in counters]
        return Reading(value=", ".join(changes), source="pg_stat views, after the load less before it")

    def status(self, ask: Ask) -> dict[str, float]:
        views = {str(row[0]) for row in ask("SELECT viewname FROM pg_views WHERE viewname LIKE 'pg_stat%'")}
        values: dict[str, float] = {}
        for sql in STATUS_SQL:
            view = sql.split()[3]
            if view in views:
                rows = ask(f"SELECT key, value FROM json_each_text((SELECT row_to_json(s) FROM ({sql}) s))")
                values |= dict(_numbers(rows))
        return values

    def view(self, gained: Mapping[str, float]) -> dict[str, float]:
        return viewed(VIEW, gained)


def _numbers(rows: list[list[str | float | None]]) -> list[tuple[str, float]]:
    numbers = []
    for name, value in rows:
        try:
            numbers.append((str(name), float(value if value is not None else "")))
        except ValueError:
            continue
    return numbers


def _here() -> list[Installation]:
    found = [_installed(binary) for binary in _binaries_here()]
    found += [_unpacked(copy) for copy in debian.fetched(RECIPE.engine)]
    return sorted(found, key=lambda one: [int(part) for part in one.version.split(".")], reverse=True)


def _binaries_here() -> list[Path]:
    candidates = [found for place in PLACES for found in sorted(Path("/").glob(f"{place}/postgres"))]
    # A link or a script elsewhere leads to a binary that has been found already, or that has no initdb
    # beside it.
    binaries = {found.resolve() for found in candidates if os.access(found, os.X_OK)}
    return sorted(binary for binary in binaries if (binary.parent / "initdb").is_file())


def _installed(binary: Path) -> Installation:
    return Installation(
        engine="postgresql",
        version=path.version((str(binary),), VERSION, "PostgreSQL"),
        origin=str(binary),
        prefix=binary.parent.parent,
        command=(str(binary),),
        digest=path.digest(binary),
    )


def _unpacked(copy: debian.Fetched) -> Installation:
    binary = copy.prefix / RECIPE.binary
    _front(copy.prefix, binary)
    return Installation(
        engine="postgresql",
        version=copy.version,
        origin=copy.origin,
        prefix=copy.prefix,
        command=(*debian.loader(copy.prefix), "--argv0", str(binary), str(_behind(binary))),
        digest=copy.digest,
    )


def _behind(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.elf")


def _front(prefix: Path, binary: Path) -> None:
    """Puts a script in the binary's place, since initdb runs `postgres` by its name, without our loader."""
    with suppress(FileExistsError):
        os.link(binary, _behind(binary))
    if not binary.samefile(_behind(binary)):
        return
    loader = " ".join(f"'{part}'" for part in debian.loader(prefix))
    script = binary.with_name(f"{binary.name}.{os.getpid()}")
    script.write_text(f'#!/bin/sh\nexec {loader} --argv0 "$0" \'{_behind(binary)}\' "$@"\n')
    script.chmod(0o755)
    script.replace(binary)


def _tool(installation: Installation, name: str) -> list[str]:
    """The command of a program that stands beside the server."""
    if len(installation.command) == 1:
        return [str(Path(installation.command[0]).with_name(name))]
    tool = installation.prefix / Path(RECIPE.binary).with_name(name)
    return [*debian.loader(installation.prefix), "--argv0", str(tool), str(tool)]


def _run(installation: Installation, command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **installation.environment, "LC_ALL": "C"},
            cwd="/",
            preexec_fn=confine(before_exec=step_down("engine", "PostgreSQL")),
        )
    except OSError as error:
        raise ServerFailed(f"{command[0]} cannot be run: {error.strerror}") from None


def _creation(settings: Mapping[str, Level]) -> list[str]:
    options = []
    if "wal_segment_size" in settings:
        size = quantity(as_text(settings["wal_segment_size"]))
        megabytes = size[0] / 2**20 if size and size[1] else (size[0] if size else 0)
        options.append(f"--wal-segsize={megabytes:g}")
    if same_value(settings.get("data_checksums", False), "on"):
        options.append("--data-checksums")
    return options


@lru_cache
def _parameters(command: tuple[str, ...]) -> frozenset[str]:
    listing = path.ask(command, "--describe-config")
    return frozenset(line.split("\t", 1)[0] for line in listing.splitlines() if "\t" in line)


def _problems(log: str) -> list[str]:
    return [line.strip() for line in log.splitlines() if ALARMING.search(line) and not BENIGN.search(line)]


def _hint(log: str, installation: Installation) -> str:
    unknown = re.search(r'unrecognized configuration parameter "([^"]+)"', log)
    if unknown:
        near = get_close_matches(unknown[1], _parameters(installation.command), n=1)
        known = f"; did you mean `{near[0]}`?" if near else ""
        return f"this PostgreSQL has no setting `{unknown[1]}`{known}"
    hints = (
        (r"No space left on device", "the disk is full: make room below the data directory"),
        (
            r"lock file .* already exists|Is another postmaster",
            "another server uses this data directory: stop it",
        ),
        (r"Cannot allocate memory|could not map anonymous shared memory", "choose smaller shared_buffers"),
        (r"error while loading shared libraries", "the server's libraries are incomplete: fetch it again"),
        (
            r"invalid value for parameter|is outside the valid range|requires a",
            "the server refuses this value",
        ),
        (
            r"[Pp]ermission denied|wrong ownership",
            "the data directory must belong to the user that runs Dyno",
        ),
        (r"incompatible with server|was initialized by", "this data directory was made by another version"),
    )
    return next((hint for pattern, hint in hints if re.search(pattern, log)), "look at the end of its log")
