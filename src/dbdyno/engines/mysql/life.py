"""MySQL from nothing to a running server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.mariadb.settings import arguments
from dbdyno.engines.mysql.log import hint, problems
from dbdyno.engines.mysql.prefix import folders
from dbdyno.engines.mysql.settings import CREATION
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
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

ACCOUNT_SQL = f"""\
CREATE USER {ACCOUNT}@localhost IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE};
"""


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 400_000_000, "a MySQL data directory")
    data.mkdir(mode=0o700)
    (data / "temporary").mkdir()
    statements = data / "account.sql"
    statements.write_text(ACCOUNT_SQL)
    creation = {name: level for name, level in settings.items() if name in CREATION}
    how = ["--initialize-insecure", f"--init-file={statements}"]
    command = [*_command(installation, data), *how, *arguments(creation)]
    make_data("MySQL", installation, command, data, problems, lambda log: hint(log, installation))
    statements.unlink()


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> ServerProcess:
    require_data(data)
    socket_path = runtime / "mysql.sock"
    require_short(socket_path.with_name(f"{socket_path.name}.lock"))
    command = [
        *_command(installation, data),
        f"--socket={socket_path}",
        f"--pid-file={runtime / 'mysql.pid'}",
        "--skip-networking",
        "--skip-name-resolve",
        "--mysqlx=OFF",
        *arguments(settings),
    ]
    return start_server(
        title=f"MySQL {installation.version}",
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
        leftovers=(
            socket_path,
            socket_path.with_name(f"{socket_path.name}.lock"),
            runtime / "mysql.pid",
        ),
    )


def _command(installation: Installation, data: Path) -> list[str]:
    """The part of the command that does not depend on the trial. `--no-defaults` must come first."""
    return [
        *installation.command,
        "--no-defaults",
        *folders(installation),
        f"--datadir={data / 'database'}",
        f"--tmpdir={data / 'temporary'}",
    ]
