"""MySQL from nothing to a running server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines.log import LOG_BYTES
from dbdyno.engines.mariadb.settings import arguments
from dbdyno.engines.mysql.log import hint, problems
from dbdyno.engines.mysql.prefix import folders
from dbdyno.engines.mysql.settings import CREATION
from dbdyno.engines.server import ServerProcess, require_short, start_server
from dbdyno.errors import ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import die_with_parent, how_it_ended
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

ACCOUNT = "dyno"
DATABASE = "dyno"
ACCOUNT_SQL = f"""\
CREATE USER {ACCOUNT}@localhost IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE};
"""
"""No password: the socket stands in a folder that only this user can enter, and there is no network."""


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 400_000_000, "a MySQL data directory")
    data.mkdir(mode=0o700)
    (data / "temporary").mkdir()
    statements = data / "account.sql"
    statements.write_text(ACCOUNT_SQL)
    creation = {name: level for name, level in settings.items() if name in CREATION}
    how = ["--initialize-insecure", f"--init-file={statements}"]
    done = subprocess.run(
        [*_command(installation, data), *how, *arguments(creation)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **installation.environment},
        preexec_fn=die_with_parent(),
    )
    statements.unlink()
    if done.returncode != 0:
        log = (done.stderr or done.stdout).decode("utf-8", "replace")[-LOG_BYTES:]
        shutil.rmtree(data, ignore_errors=True)
        reason = next(iter(problems(log)), how_it_ended(done.returncode))
        raise ServerFailed(f"MySQL could not make its data directory: {reason}", hint(log, installation), log)


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> ServerProcess:
    if not (data / "database").is_dir():
        raise UserError(f"{data} is not a data directory of Dyno's", "make one with `initialise` first")
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
        url=f"mysql://{ACCOUNT}@localhost/{DATABASE}?socket={quote(str(socket_path), safe='/')}",
        installation=installation,
        command=command,
        data=data / "database",
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
