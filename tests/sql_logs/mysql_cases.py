"""What the tests of the logs of MariaDB and MySQL share with others."""

from __future__ import annotations

SLOW_MARIADB = """\
/usr/sbin/mariadbd, Version: 11.8.3-MariaDB-0+deb13u1 (Debian). started with:
Tcp port: 0  Unix socket: /run/s
Time\t\t    Id Command\tArgument
# Time: 261122 16:00:00
# User@Host: root[root] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.250000  Lock_time: 0.000045  Rows_sent: 1  Rows_examined: 1
# Rows_affected: 0  Bytes_sent: 58
use shop;
SET timestamp=1795363200;
SELECT name
# a comment
FROM customer WHERE id = 7;
# User@Host: root[root] @ localhost []
# Thread_id: 6  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 0
SET timestamp=1795363200;
# administrator command: Quit;
# User@Host: root[root] @ localhost []
# Query_time: 0.500000  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
SET timestamp=1795363201;
SET autocommit=0;
# Time: 261122 16:00:01
# User@Host: root[root] @ localhost []
"""


SLOW_MYSQL = """\
# Time: 2026-11-22T16:00:00.000000Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.001500  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 1
SET timestamp=1795363200;
SELECT 1;
"""


GENERAL_MARIADB = """\
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


GENERAL_MYSQL = (
    "2026-11-22T16:00:00.000000Z\t    8 Query\tSELECT 1\n2026-11-22T16:00:00.000001Z\t    8 Close stmt\t\n"
)
