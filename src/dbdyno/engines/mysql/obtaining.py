"""Where MySQL comes from: a path, Debian's packages, or an installation on the host."""

from __future__ import annotations

from dbdyno.obtain import debian
from dbdyno.obtain.server import PackagedServer

SERVER = PackagedServer(
    recipe=debian.Recipe(
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
    client=debian.Recipe(
        engine="client-of-mysql",
        packages=("mysql-client-core",),
        server="mysql-client-core",
        binary="usr/bin/mysql",
        suites={"9": "sid"},
    ),
)
