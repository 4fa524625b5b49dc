"""Where MariaDB comes from: a path, Debian's packages, or an installation on the host."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.obtain import debian
from dbdyno.obtain.platforms import Platforms
from dbdyno.obtain.server import PackagedServer

SUITES = {"11.8": "trixie", "10.11": "bookworm"}
GALERA = debian.Recipe(
    engine="galera-of-mariadb",
    packages=("galera-4", "mariadb-server", "rsync"),
    server="mariadb-server",
    binary="usr/lib/galera/libgalera_smm.so",
    suites=SUITES,
    # Tools of a host that the scripts of a state transfer do without, or that any host has.
    without=(
        "gawk",
        "iproute2",
        "libconfig-inifiles-perl",
        "libdbi-perl",
        "lsof",
        "procps",
        "psmisc",
        "socat",
    ),
)
"""The provider of clusters, and the scripts and programs by which a node gets all of its data."""

SERVER = PackagedServer(
    recipe=debian.Recipe(
        engine="mariadb",
        packages=("mariadb-server-core",),
        server="mariadb-server-core",
        binary="usr/sbin/mariadbd",
        suites=SUITES,
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
        suites=SUITES,
    ),
    beside=(GALERA,),
)

PLATFORMS = Platforms(
    engine="mariadb",
    title=SERVER.title,
    version=SERVER.version,
    recipes=(replace(SERVER.recipe, suites={"10.11": "bookworm", "11.8": "trixie"}),),
    unpacked=lambda recipe, copy: copy.installation(str(copy.prefix / recipe.binary)),
)
"""The older version is the usual one here, because mirrors have it for all architectures."""
