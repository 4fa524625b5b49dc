"""What the tests of traffic share with others."""

from __future__ import annotations

MORE = "".join(
    "# User@Host: root[root] @ localhost []\n"
    "# Query_time: 0.125000  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0\n"
    f"SET timestamp=1795363202;\nUPDATE customer SET name = 'n{number}' WHERE id = {number};\n"
    for number in range(4)
)
