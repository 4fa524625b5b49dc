"""How MySQL is deployed: as MariaDB, with other names."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.engines.mariadb.production import PRODUCTION as OF_MARIADB

PRODUCTION = replace(
    OF_MARIADB,
    folder="/etc/mysql/mysql.conf.d",
    service="mysql",
    client="mysql --batch --skip-column-names --execute",
)
