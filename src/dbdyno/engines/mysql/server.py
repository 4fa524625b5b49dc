"""MySQL from an installation that is found or obtained to a running server, with its log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.mariadb.server import ALARMING, given_certificate
from dbdyno.engines.mariadb.server import HINTS as OF_BOTH
from dbdyno.engines.mariadb.settings import arguments
from dbdyno.engines.mysql.settings import CREATION, OF_REPLICATING, defaults, folders
from dbdyno.engines.server import (
    ACCOUNT,
    DATABASE,
    ServerProcess,
    doubtful_lines,
    hint_in,
    make_data,
    require_data,
    require_short,
    start_server,
    unknown_setting,
    url_of,
)
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import PackagedServer

ACCOUNT_SQL = f"""\
CREATE USER {ACCOUNT}@localhost IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE};
"""


WITHOUT_KEYS = (
    "--loose-auto-generate-certs=OFF",
    "--loose-sha256-password-auto-generate-rsa-keys=OFF",
    "--loose-caching-sha2-password-auto-generate-rsa-keys=OFF",
)
"""Data to which nobody gave keys would get four pairs of them at the first start, each from primes that are
found by chance. A server gets a key on a curve from Dyno in their place."""


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
        # Nodes have keys of their own making, and a group's layer takes no other.
        *(() if "loose_auto_generate_certs" in settings else given_certificate(runtime, settings)),
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
        *WITHOUT_KEYS,
        *folders(installation),
        f"--datadir={data / 'database'}",
        f"--tmpdir={data / 'temporary'}",
    ]


BENIGN = re.compile(
    r"is deprecated|root user|empty password|CA certificate ca\.pem is self signed|"
    r"Could not increase number of max_open_files|Insecure configuration for --pid-file|"
    # What it says for want of the keys that it is told not to make.
    r"\[MY-0(13595|10069|10284)\]"
)

HINTS = (
    (r"errno: 28|error code 28|disk full", "the disk is full: make room below the data directory"),
    *OF_BOTH,
)


def problems(log: str) -> list[str]:
    """The lines that make a trial doubtful."""
    return doubtful_lines(log, ALARMING, BENIGN)


def hint(log: str, installation: Installation) -> str:
    """What to do about a server that failed with this log."""
    unknown = re.search(r"unknown (?:variable|option) '(?:--)?([\w-]+)", log)
    if unknown and unknown[1].replace("-", "_").startswith(OF_REPLICATING):
        return f"`{unknown[1].replace('-', '_')}` is of a cluster: give the `cluster.kind` that has it"
    if unknown:
        return unknown_setting("MySQL", unknown[1].replace("-", "_"), defaults(installation))
    return hint_in(log, HINTS)


SERVER = PackagedServer(
    recipe=debian.DebianRecipe(
        engine="mysql",
        packages=("mysql-server-core",),
        server="mysql-server-core",
        binary="usr/sbin/mysqld",
        # No release of Debian has it, and sid moves on: only the major version is sure.
        suites={"9": "sid"},
    ),
    title="MySQL",
    version=r"Ver (\d+\.\d+\.\d+)(?!\S*MariaDB)",
    names=("mysqld",),
    places=("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/mysql/bin"),
    image="mysql",
    client=debian.DebianRecipe(
        engine="client-of-mysql",
        packages=("mysql-client-core",),
        server="mysql-client-core",
        binary="usr/bin/mysql",
        suites={"9": "sid"},
    ),
    oldest=8,
)
