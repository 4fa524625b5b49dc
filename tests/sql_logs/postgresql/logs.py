"""Logs as PostgreSQL 15 writes them, and a short way to read one."""

from __future__ import annotations

from dbdyno.sql_logs.formats import format_of
from dbdyno.sql_logs.seen import SeenStatement

STATEMENT = "SELECT name FROM customer WHERE id = $1"
STDERR = f"""\
2026-11-24 21:50:00.000 UTC [10] LOG:  starting PostgreSQL 15.14
2026-11-24 21:50:01.000 UTC [11] me@shop LOG:  duration: 0.125 ms  parse <unnamed>: {STATEMENT}
2026-11-24 21:50:01.001 UTC [11] me@shop LOG:  duration: 0.125 ms  bind <unnamed>: {STATEMENT}
2026-11-24 21:50:01.001 UTC [11] me@shop DETAIL:  parameters: $1 = '7'
2026-11-24 21:50:01.500 UTC [11] me@shop LOG:  duration: 250.000 ms  execute <unnamed>: {STATEMENT}
2026-11-24 21:50:01.500 UTC [11] me@shop DETAIL:  parameters: $1 = '7'
2026-11-24 21:50:02.000 UTC [12] me@crm LOG:  duration: 500.000 ms  statement: SELECT 'a'
\t  FROM t -- it's
\t WHERE b = 'x: $1';
2026-11-24 21:50:03.000 UTC [12] me@crm ERROR:  relation "nothing" does not exist at character 15
2026-11-24 21:50:03.000 UTC [12] me@crm STATEMENT:  SELECT * FROM nothing
"""
_ROW = (
    '2026-11-24 21:50:%s UTC,"me","shop",11,"[local]",67439a31.b,%d,"%s",2026-11-24 21:50:00 UTC,3/2,0,LOG,'
)
CSV = f"""\
{_ROW % ("01.500", 3, "SELECT")}00000,"duration: 250.000 ms  execute <unnamed>: SELECT ""name""
  FROM customer WHERE id = $1","parameters: $1 = '7'",,,,,,,,"psql","client backend",,0
{_ROW % ("02.500", 4, "idle")}00000,"statement: BEGIN",,,,,,,,,"psql","client backend",,0
"""
JSON = (
    '{"timestamp":"2026-11-24 21:50:01.500 UTC","user":"me","dbname":"shop","pid":11,'
    '"session_id":"67439a31.b","error_severity":"LOG","message":"duration: 250.000 ms  execute <unnamed>: '
    'SELECT \\"name\\"\\n  FROM customer WHERE id = $1","detail":"parameters: $1 = \'7\'"}\n'
)


def read(text: str) -> list[SeenStatement]:
    """The statements of a log, whose kind is told by what stands in it."""
    lines = list(enumerate(text.splitlines(keepends=True), 1))
    found = format_of([line.rstrip("\n") for _, line in lines])
    assert found is not None
    return list(found.statements(lines))


def asked(text: str) -> list[SeenStatement]:
    return [seen for seen in read(text) if not seen.rest]
