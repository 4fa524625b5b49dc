"""What Firebird writes into its log."""

from __future__ import annotations

from dbdyno.engines.firebird.log import problems

LOG = """\

host	Sat Jan  1 12:00:00 2026
	Database: /data/dyno.fdb
	internal Firebird consistency check (wrong record length (183), file: vio.cpp line: 1885)


host	Sat Jan  1 12:00:05 2026
	Sweep is started by SYSDBA
"""


def test_the_entries_of_the_log_that_matter_are_found() -> None:
    found = problems(LOG)
    assert len(found) == 1
    assert found[0].startswith("Database: /data/dyno.fdb internal Firebird consistency check")
    assert problems("") == []
