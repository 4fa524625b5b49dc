"""What the tests of general log share with others."""

from __future__ import annotations

MARIADB = """\
/usr/sbin/mariadbd, Version: 11.8.3-MariaDB (Debian). started with:
Tcp port: 0  Unix socket: /run/s
Time\t\t    Id Command\tArgument
261122 16:00:00\t     5 Connect\troot@localhost on shop using Socket
\t\t     6 Query\tSELECT name
  FROM customer
 WHERE id = 7
\t\t     5 Prepare\tSELECT ? FROM t
\t\t     5 Execute\tSELECT 4 FROM t
261122  6:00:01\t     5 Quit\t
"""


MYSQL = (
    "2026-11-22T16:00:00.000000Z\t    8 Query\tSELECT 1\n2026-11-22T16:00:00.000001Z\t    8 Close stmt\t\n"
)
