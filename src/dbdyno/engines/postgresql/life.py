"""PostgreSQL from nothing to a running server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dbdyno.engines.log import LOG_BYTES
from dbdyno.engines.postgresql.log import hint, problems
from dbdyno.engines.postgresql.obtaining import tool
from dbdyno.engines.postgresql.settings import CREATION
from dbdyno.engines.server import (
    ACCOUNT,
    DATABASE,
    ServerProcess,
    require_data,
    require_short,
    start_server,
    url_of,
)
from dbdyno.engines.values import as_text, quantity, same_value
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine, how_it_ended
from dbdyno.host.room import require_disk
from dbdyno.host.user_namespace import step_down
from dbdyno.obtain.installation import Installation

PORT = 5432


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    make_cluster(installation, data, settings)
    done = alone(installation, data, "postgres", f"CREATE DATABASE {DATABASE};\n")
    _require_made(done, installation, data)


def make_cluster(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    """A data directory without a database of Dyno's."""
    require_disk(data.parent, 150_000_000, "a PostgreSQL data directory")
    data.mkdir(mode=0o700)
    options = [
        "--no-locale",
        "--encoding=UTF8",
        "--auth=trust",
        f"--username={ACCOUNT}",
    ]
    command = [
        *tool(installation, "initdb"),
        *options,
        *_creation(settings, _major(installation)),
        "-D",
        str(data / "database"),
    ]
    _require_made(_run(installation, data, command), installation, data)


def _require_made(done: subprocess.CompletedProcess[str], installation: Installation, data: Path) -> None:
    log = (done.stdout + done.stderr)[-LOG_BYTES:]
    if done.returncode != 0 or problems(log):
        shutil.rmtree(data, ignore_errors=True)
        lines = [line for line in log.splitlines() if re.search(r"error|FATAL|ERROR|cannot|could not", line)]
        reason = lines[0].strip() if lines else how_it_ended(done.returncode)
        raise ServerFailed(
            f"PostgreSQL could not make its data directory: {reason}", hint(log, installation), log
        )


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> ServerProcess:
    require_data(data)
    # The name of its socket goes by the port of its network, too.
    port = settings.get("port", PORT)
    socket_path = runtime / f".s.PGSQL.{port}"
    require_short(socket_path.with_name(f"{socket_path.name}.lock"))
    ours: dict[str, Level] = {
        "unix_socket_directories": str(runtime),
        "unix_socket_permissions": "0700",
        "listen_addresses": "",
        "port": port,
    }
    chosen = {name: level for name, level in settings.items() if name not in CREATION}
    arguments = [f"--{name}={as_text(level)}" for name, level in {**ours, **chosen}.items()]
    return start_server(
        title=f"PostgreSQL {installation.version}",
        url=url_of("postgresql", socket_path, data),
        installation=installation,
        command=[*installation.command, "-D", str(data / "database"), *arguments],
        data=data,
        folder=data,
        runtime=runtime,
        how=replace(launch, before_exec=(*launch.before_exec, *step_down("engine", "PostgreSQL"))),
        socket=socket_path,
        version_sql="SHOW server_version",
        problems=problems,
        hint=lambda log: hint(log, installation),
        # A fast shutdown; SIGTERM would wait for clients to leave by themselves.
        stop_signal=signal.SIGINT,
        leftovers=(socket_path, socket_path.with_name(f"{socket_path.name}.lock")),
    )


def alone(
    installation: Installation, data: Path, database: str, statements: str
) -> subprocess.CompletedProcess[str]:
    """Runs statements, one a line, in a database that no server has open. They need no account."""
    command = [*installation.command, "--single", "-D", str(data / "database"), database]
    return _run(installation, data, command, statements)


def _run(
    installation: Installation, data: Path, command: list[str], text: str = ""
) -> subprocess.CompletedProcess[str]:
    own = Launch().steps(data, *installation.writes)
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **installation.environment, "LC_ALL": "C"},
            cwd="/",
            preexec_fn=confine(before_exec=(*own, *step_down("engine", "PostgreSQL"))),
        )
    except OSError as error:
        raise ServerFailed(f"{command[0]} cannot be run: {error.strerror}") from None


def _major(installation: Installation) -> int:
    return int(installation.version.partition(".")[0])


def _creation(settings: Mapping[str, Level], major: int) -> list[str]:
    options = ["--no-instructions"] if major >= 14 else []
    if "wal_segment_size" in settings:
        size = quantity(as_text(settings["wal_segment_size"]))
        megabytes = size[0] / 2**20 if size and size[1] else (size[0] if size else 0)
        options.append(f"--wal-segsize={megabytes:g}")
    if same_value(settings.get("data_checksums", False), "on"):
        options.append("--data-checksums")
    elif "data_checksums" in settings and major >= 18:
        # From this version on they are made unless that is refused.
        options.append("--no-data-checksums")
    return options
