"""Where MariaDB comes from: a path, Debian's packages, or an installation on the host."""

from __future__ import annotations

from dbdyno.obtain import debian
from dbdyno.obtain.server import PackagedServer

SERVER = PackagedServer(
    recipe=debian.Recipe(
        engine="mariadb",
        packages=("mariadb-server-core",),
        server="mariadb-server-core",
        binary="usr/sbin/mariadbd",
        suites={"11.8": "trixie", "10.11": "bookworm"},
    ),
    title="MariaDB",
    version=r"Ver (\d+\.\d+\.\d+)-MariaDB",
    names=("mariadbd", "mysqld"),
    places=("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/mysql/bin"),
    client=debian.Recipe(
        engine="client-of-mariadb",
        packages=("mariadb-client-core",),
        server="mariadb-client-core",
        binary="usr/bin/mariadb",
        suites={"11.8": "trixie", "10.11": "bookworm"},
    ),
)
