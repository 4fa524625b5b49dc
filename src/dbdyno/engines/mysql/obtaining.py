"""Where MySQL comes from: a path, Debian's packages, or an installation on the host."""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.obtain import debian, path
from dbdyno.obtain.server import PackagedServer


class _MySQL(PackagedServer):
    def on_host(self) -> list[Path]:
        """A MariaDB may bear the name as well."""
        found = super().on_host()
        return [one for one in found if re.search(self.version, path.ask((str(one),), "--version"))]


SERVER = _MySQL(
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
)
