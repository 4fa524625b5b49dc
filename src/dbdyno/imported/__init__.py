"""Runs that Dyno did not carry out: the logs and summaries that other tools left, as trials that reports
read.

`files` finds the files of each repetition; `pgbench`, `sysbench`, `hdrhistogram`, `phoronix` and `summaries`
read them; `tallies` makes a tally of what they hold, and a run of the tallies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.registry import registry

if TYPE_CHECKING:
    from dbdyno.imported.tallies import Tool
    from dbdyno.registry import LazyTable

TOOLS: LazyTable[Tool] = registry(
    {
        "pgbench": "dbdyno.imported.pgbench:TOOL",
        "sysbench": "dbdyno.imported.sysbench:TOOL",
        "hammerdb": "dbdyno.imported.summaries:HAMMERDB",
        "benchbase": "dbdyno.imported.summaries:BENCHBASE",
        "go-tpc": "dbdyno.imported.summaries:GO_TPC",
        "ycsb": "dbdyno.imported.summaries:YCSB",
        "k6": "dbdyno.imported.summaries:K6",
        "wrk": "dbdyno.imported.summaries:WRK",
        "hdrhistogram": "dbdyno.imported.hdrhistogram:TOOL",
        "fio": "dbdyno.imported.summaries:FIO",
        "phoronix": "dbdyno.imported.phoronix:TOOL",
    }
)
"""By the name that `dyno import` takes."""
