"""What a production server was asked, as a workload: its logs read, its statements put in groups that differ
in their values alone, and a script that draws such statements with the shares that were seen.

`read` tells what a file is and gives its statements; `digest` puts them in groups; `draw` says
how a group's values are drawn; `inserts` has rows get new keys, which `schema` reads from a dump; `script`
writes the workload.
"""

KNOWN = (
    "a slow log or general log of MariaDB or MySQL, a log of PostgreSQL (text, CSV or JSON), or"
    " pg_stat_statements or performance_schema's statement digests as CSV or JSON"
)
"""The logs that `formats` reads, in words."""
