"""What the command line tells a study's reader of the engines that it knows."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.begin.catalogue import catalogue
from tests.study.reading import mistakes, read

SEARCH = """
title  = "fast"
engine = "firebird@5"
design = "search"
[workload]
name = "tpcb"
[settings]
"config.forced_writes" = false
[factors]
"config.page_buffers" = [2048, 8192]
"config.MaxUnflushedWrites" = [2, 1000]
[search]
time = "20m"
"""


def test_a_search_varies_no_wait_for_firebirds_disk_unless_it_may() -> None:
    known = replace(catalogue(), layers=catalogue(ask_engines=False).layers)
    told = [mistake.message for mistake in mistakes(SEARCH, known)]
    assert told == ["`config.MaxUnflushedWrites` = 1000 gives up durability"]
    allowed = SEARCH.replace('time = "20m"', 'time = "20m"\nallow = ["durability"]')
    assert read(allowed, known).search is not None
