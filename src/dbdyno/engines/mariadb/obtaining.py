"""Where MariaDB comes from: a path, Debian's packages, or an installation on the host."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.obtain import debian
from dbdyno.obtain.platforms import Platforms
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

PLATFORMS = Platforms(
    engine="mariadb",
    title=SERVER.title,
    version=SERVER.version,
    recipes=(replace(SERVER.recipe, suites={"10.11": "bookworm", "11.8": "trixie"}),),
    unpacked=lambda recipe, copy: copy.installation(str(copy.prefix / recipe.binary)),
)
"""The older version is the usual one here, because mirrors have it for all architectures."""
