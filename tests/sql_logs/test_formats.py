"""What a log does not tell of its statements, and the setting by which it would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.formats import AS_TOLD, DriverReader, lacks_of, lacks_of_all
from dbdyno.sql_logs.groups import Grouping
from dbdyno.sql_logs.read import traffic_of

UNTIMED = "2026-11-24 21:50:00 UTC [1] LOG:  execute <unnamed>: SELECT $1\n" * 2
CUT = "\t\t     6 Init DB\tshop\n\t\t     6 Query\tSELECT (1\n\t\t     6 Quit\t\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("query,calls\nSELECT $1,3\n", {
            "the values of $1 and its like": "log_min_duration_statement = 0", "its time": "total_exec_time",
            "its database": "datname"}),
        (UNTIMED, {
            "the values of $1 and its like": "log_parameter_max_length = -1",
            "its time": "log_min_duration_statement = 0",
            "its database": "log_line_prefix = '%m [%p] %q%u@%d '"}),
        (CUT, {"the end of its text": "as a whole", "its time": "slow_query_log = ON"}),
    ],
)  # fmt: skip
def test_each_digest_says_what_is_missing_and_how_to_get_it(
    tmp_path: Path, log: str, expected: dict[str, str]
) -> None:
    path = tmp_path / "log"
    path.write_text(log)
    traffic = traffic_of([path])
    found = {lack.what: lack.remedy for lack in lacks_of(traffic.groups[0], traffic)}
    assert set(found) == set(expected)
    assert all(remedy in found[what] for what, remedy in expected.items())


@pytest.mark.parametrize(("took", "lacks"), [("0.25", 1), ("0.01", 0)])
def test_a_log_of_slow_statements_alone_is_told(tmp_path: Path, took: str, lacks: int) -> None:
    path = tmp_path / "log"
    path.write_text(f"# Time: 261124 21:50:00\n# User@Host: a[a] @ b []\n# Query_time: {took}\nSELECT 1;\n")
    found = lacks_of_all(traffic_of([path]))
    assert len(found) == lacks and all("long_query_time = 0" in lack.remedy for lack in found)


def test_a_piece_of_a_file_is_taken_in_before_the_next_is_read() -> None:
    """Many pieces at a time were the whole file, which need not fit into memory."""
    entry = (
        b"# User@Host: app[app] @ web [10.0.0.1]\n# Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1\n"
        b"SET timestamp=1795363200;\nSELECT 1;\n"
    )
    # Until so many lines are read, it is not known whether they end in a carriage return.
    pieces = [entry * 300, entry, entry, entry]
    grouping, counted = Grouping("slow", Dialect.MYSQL), list[int]()

    def read() -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            counted.append(grouping.traffic().count)

    DriverReader("slow", AS_TOLD).group(read(), grouping)
    assert counted == [299, 300, 301, 302]
