"""MariaDB from nothing to a running server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.mariadb.log import hint, problems
from dbdyno.engines.mariadb.prefix import folders, share_folder
from dbdyno.engines.mariadb.settings import CREATION, arguments
from dbdyno.engines.server import (
    ACCOUNT,
    DATABASE,
    ServerProcess,
    make_data,
    require_data,
    require_short,
    start_server,
    url_of,
)
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

ACCOUNT_SQL = f"""
FLUSH PRIVILEGES;
CREATE USER {ACCOUNT}@localhost IDENTIFIED VIA mysql_native_password USING '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE};
"""

UNDER_EMULATION = ("--loose-innodb-buffer-pool-size-max=8M",)
"""An emulator keeps an account of each page that a server reserves, and a buffer pool reserves terabytes to
grow into: that takes all memory of this machine. With the least maximum the pool is as large as it begins."""


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 400_000_000, "a MariaDB data directory")
    data.mkdir(mode=0o700)
    (data / "database").mkdir()
    (data / "temporary").mkdir()
    creation = {name: level for name, level in settings.items() if name in CREATION}
    command = [*command_of(installation, data), "--bootstrap", "--log-warnings=1", *arguments(creation)]
    make_data(
        "MariaDB",
        installation,
        command,
        data,
        problems,
        lambda log: hint(log, installation),
        _system_tables(installation),
    )


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> ServerProcess:
    require_data(data)
    socket_path = runtime / "mariadb.sock"
    require_short(socket_path)
    socket_path.unlink(missing_ok=True)
    command = [
        *command_of(installation, data),
        f"--socket={socket_path}",
        f"--pid-file={runtime / 'mariadb.pid'}",
        "--skip-networking",
        "--skip-name-resolve",
        *arguments(settings),
    ]
    return start_server(
        title=f"MariaDB {installation.version}",
        url=url_of("mysql", socket_path, data),
        installation=installation,
        command=command,
        data=data,
        folder=data / "database",
        runtime=runtime,
        how=launch,
        socket=socket_path,
        version_sql="SELECT VERSION()",
        problems=problems,
        hint=lambda log: hint(log, installation),
        leftovers=(socket_path, runtime / "mariadb.pid"),
    )


def command_of(installation: Installation, data: Path) -> list[str]:
    """The part of the command that does not depend on the trial. `--no-defaults` must come first."""
    root = ["--user=root"] if os.getuid() == 0 else []
    return [
        *installation.command,
        "--no-defaults",
        *folders(installation),
        f"--datadir={data / 'database'}",
        f"--tmpdir={data / 'temporary'}",
        *(UNDER_EMULATION if installation.emulated else ()),
        *root,
    ]


def _system_tables(installation: Installation) -> bytes:
    share = share_folder(installation)
    parts = [b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"]
    for stem in ("system_tables", "performance_tables", "system_tables_data"):
        names = [f"mariadb_{stem}.sql", f"mysql_{stem}.sql"]
        found = next((share / name for name in names if share and (share / name).is_file()), None)
        if found is None:
            raise UserError(
                f"{installation.command[-1]} has no {names[0]} beside it, which makes the system tables",
                "install the server's whole package, or `dyno engines fetch mariadb@11.8`",
            )
        parts.append(found.read_bytes())
    return b"\n".join([*parts, ACCOUNT_SQL.encode()])
