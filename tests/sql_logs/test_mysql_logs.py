"""The slow log and the general log, as MariaDB, MySQL and Percona Server write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dbdyno.driver._driver import general_log_begins
from dbdyno.sql_logs.formats import DriverReader
from dbdyno.sql_logs.seen import CUT_OFF, LAST, LogReading, SeenStatement
from tests.sql_logs.mysql_cases import GENERAL_MARIADB, GENERAL_MYSQL, SLOW_MARIADB, SLOW_MYSQL

DOUBT = "entry whose begin or end is not certain"
TOLD_TWICE = "EXECUTE whose statement is logged beside it"
AT_S = datetime(2026, 11, 22, 16, tzinfo=UTC).timestamp()


def slow(*texts: str, whole: bool = False, zone: str = "") -> list[SeenStatement]:
    reader = DriverReader("slow", LogReading(whole=whole, zone=zone))
    found = [seen for text in texts for seen in reader.read(enumerate(text.splitlines(keepends=True), 1))]
    return [*found, *reader.ended()]


def general(text: str, whole: bool = False) -> list[SeenStatement]:
    reader = DriverReader("general", LogReading(whole=whole))
    return [*reader.read(enumerate(text.splitlines(keepends=True), 1)), *reader.ended()]


def entry(statement: str, head: str = "", time: str = "2026-11-22T16:00:00.000000Z") -> str:
    return (
        f"# Time: {time}\n# User@Host: root[root] @ localhost []  Id:     8\n{head}"
        f"# Query_time: 0.001500  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 1\n"
        f"SET timestamp=1795363200;\n{statement};\n"
    )


def texts(found: list[SeenStatement]) -> list[str]:
    return [seen.text for seen in found if not seen.rest]


def left_out(found: list[SeenStatement]) -> dict[str, int]:
    return {
        seen.rest: sum(one.times for one in found if one.rest == seen.rest) for seen in found if seen.rest
    }


def test_statements_have_their_time_and_their_line() -> None:
    assert [(seen.text, seen.line, seen.took_s, seen.rest) for seen in slow(SLOW_MARIADB)] == [
        ("SELECT name\n# a comment\nFROM customer WHERE id = 7", 11, 0.25, ""),
        ("", 19, 0.0001, "command Quit"),
        ("SET autocommit=0", 23, 0.5, ""),
        ("", 24, None, CUT_OFF),
    ]
    [found] = slow(SLOW_MYSQL)
    assert found == SeenStatement("SELECT 1", 5, 0.0015, session="8", at_s=AT_S - 0.0015, rows=1, examined=1)


def test_each_statement_has_its_session_its_begin_and_its_database() -> None:
    found = [(seen.session, seen.at_s, seen.database) for seen in slow(SLOW_MARIADB)][:3]
    assert found == [("5", AT_S, "shop"), ("6", AT_S, "shop"), ("", AT_S + 1, "shop")]


def test_a_database_stays_until_the_log_says_another_even_in_the_next_file() -> None:
    one, other = entry("SELECT 1").replace("SET t", "use a;\nSET t"), entry("SELECT 2")
    last = one.replace("use a", "use b").replace("SELECT 1", "SELECT 3")
    assert [seen.database for seen in slow(one, other + last, other)] == ["a", "a", "b", "b"]
    none = SLOW_MARIADB.replace("Thread_id: 6  Schema: shop  QC_hit", "Thread_id: 6  Schema:   QC_hit")
    assert [seen.database for seen in slow(none)][:3] == ["shop", "", "shop"]


def test_an_entry_without_its_end_is_left_out_wherever_it_is_cut() -> None:
    cut = "DELETE FROM item\n WHERE id = 7"
    log = entry("SELECT 1") + entry(cut)
    begin = len(entry("SELECT 1"))
    for at in range(begin + 1, len(log)):
        found = slow(log[:at])
        assert texts(found) == ["SELECT 1"] and left_out(found) == {CUT_OFF: 1}, log[begin:at]
        behind = slow(log[:at] + "\n" + entry("SELECT 2"))
        assert texts(behind) in (["SELECT 1", "SELECT 2"], ["SELECT 2"]) or at == len(log) - 1
    assert texts(slow(log)) == ["SELECT 1", cut]


def test_the_end_of_a_file_may_cut_a_procedure_behind_each_of_its_statements() -> None:
    made = "CREATE PROCEDURE p()\nBEGIN\n DELETE FROM a;\n DELETE FROM b;\nEND"
    log = entry(made)
    assert texts(slow(log + entry("SELECT 1"))) == [made, "SELECT 1"]
    assert left_out(slow(log[: log.index(" DELETE FROM b")])) == {LAST: 1} and texts(
        slow(log, whole=True)
    ) == [made]


def test_a_log_within_a_text_is_no_statement() -> None:
    pasted = "INSERT INTO note VALUES ('\n" + entry("DROP TABLE item") + "')"
    found = slow(entry("SELECT 1") + entry(pasted) + entry("SELECT 2"))
    assert texts(found) == ["SELECT 1", "SELECT 2"] and left_out(found) == {DOUBT: 2}


def test_an_open_quote_that_never_ends_takes_no_other_statement_along() -> None:
    log = entry("SELECT 'a'") + entry("SELECT 'it")[:-2] + "\n" + entry("SELECT 'b'") + entry("SELECT 3")
    assert texts(slow(log)) == ["SELECT 'a'", "SELECT 'b'", "SELECT 3"]


@pytest.mark.parametrize(
    "between",
    [
        "",  # All that stood between two statements is lost.
        "# Rows_affected: 0  Bytes_sent: 8\nSET timestamp=1795363201;\n",
        "SET timestamp=1795363201;\n",
        "us\x05 shop;\nSET timestamp=1795363201;\n",
        "# Time: 2026-11",
    ],
)
def test_an_entry_holds_one_statement(between: str) -> None:
    log = entry("SELECT 1") + entry("SELECT 2") + f"{between}DELETE FROM item;\n" + entry("SELECT 3")
    found = slow(log)
    assert texts(found) == ["SELECT 1", "SELECT 3"] and left_out(found) == {CUT_OFF: 1}


def test_blocks_and_comments_behind_a_statement_are_of_it() -> None:
    made = [
        "IF a THEN\n SELECT 1;\nEND IF",
        "SELECT ';'; -- a; b",
        "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
    ]
    assert texts(slow("".join(map(entry, [*made, "SELECT 1"])))) == [*made, "SELECT 1"]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("lost", ["SET timestamp=1795363200;\n", "mestamp=1795363200;\nSEL", "=1795363200"])
def test_a_statement_without_its_time_is_none_where_the_server_writes_it(place: int, lost: str) -> None:
    entries = [entry("SELECT 1"), entry("SELECT 2"), entry("SELECT 3")]
    entries[place] = entries[place].replace(lost, "")
    found = slow("".join(entries))
    assert texts(found) == [f"SELECT {n}" for n in (1, 2, 3) if n != place + 1]
    assert left_out(found) == {CUT_OFF: 1}


def test_servers_that_write_no_times_are_read() -> None:
    log = entry("SELECT 1").replace("SET timestamp=1795363200;\n", "")
    assert texts(slow(log * 200)) == ["SELECT 1"] * 200
    old = log.replace("0.001500", "2").replace("0.000002", "0")
    assert texts(slow(old + entry("SELECT 2") + old)) == ["SELECT 1", "SELECT 2", "SELECT 1"]


WARNINGS = """\
# Time: 261122 17:00:00
# User@Host: root[root] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.250000  Lock_time: 0.000045  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 1  Bytes_sent: 58
# Full_scan: Yes  Full_join: No
#
# explain: id\tselect_type\ttable
# explain: 1\tSIMPLE\tt
#
# Warnings
# Warning 1062 Duplicate entry 'x; Errno: 5' for key 'PRIMARY'
SET timestamp=1795363200;
INSERT IGNORE INTO t VALUES (1);
"""


def test_every_line_of_a_head_is_of_the_head() -> None:
    assert slow(WARNINGS) == [
        SeenStatement("INSERT IGNORE INTO t VALUES (1)", 14, 0.25, session="5", at_s=AT_S, database="shop",
                      rows=0, affected=1, whole_s=AT_S, examined=0)
    ]  # fmt: skip


def test_percona_server_names_the_database_the_error_and_the_sample() -> None:
    head = (
        "# Schema: my shop  Last_errno: 1062  Killed: 0\n"
        "# Log_slow_rate_type: query  Log_slow_rate_limit: 100\n"
    )
    [found] = slow(entry("INSERT INTO t VALUES (1)", head))
    assert (found.database, found.failed, found.times, found.sampled) == ("my shop", True, 100, True)
    assert found.took_s == pytest.approx(0.15)
    more = (
        "Rows_examined: 1 Thread_id: 9 Errno: 1205 Killed: 0 Start: 2026-11-22T15:59:59.000000Z"
        " End: 2026-11-22T16:00:00.000000Z"
    )
    extra = entry("SELECT 1").replace("Rows_examined: 1", more)
    [found] = slow(extra)
    assert found.failed and found.at_s == AT_S - 1


def test_an_old_server_of_mysql_logs_the_end_of_a_statement() -> None:
    old = entry("SELECT 1", time="261122 17:00:00").replace("0.001500", "99.500000")
    [found] = slow(old)
    assert (found.at_s, found.whole_s) == (AT_S - 99.5, AT_S)
    [finer] = slow(entry("SELECT 1", time="261122 17:00:00.250000"))
    assert finer.at_s == pytest.approx(AT_S + 0.25 - 0.0015) and finer.whole_s is None


def test_an_entry_may_begin_with_its_time_of_execution() -> None:
    short = "".join(entry("SELECT 1").splitlines(keepends=True)[2:])
    assert texts(slow(short * 2)) == ["SELECT 1", "SELECT 1"]


def test_a_clients_own_words_are_no_context() -> None:
    log = entry("SET timestamp=5") + entry("use shop").replace("SET t", "use shop;\nSET t")
    assert texts(slow(log)) == ["SET timestamp=5", "use shop"]


def test_a_moment_that_does_not_exist_is_none() -> None:
    log = entry("SELECT 1", time="991399 26:61:61").replace("SET timestamp=1795363200;\n", "")
    assert [seen.at_s for seen in slow(log)] == [None]
    assert [seen.at_s for seen in general("991399 26:61:61\t     5 Query\tSELECT 1\n", whole=True)] == [None]


def test_local_times_are_those_of_the_zone_that_is_named() -> None:
    log = entry("SELECT 1", time="261122 17:00:00").replace("SET timestamp=1795363200;\n", "")
    assert [seen.whole_s for seen in slow(log, zone="Europe/Berlin")] == [AT_S]


def test_a_log_that_begins_in_the_midst_of_an_entry_is_read() -> None:
    behind = SLOW_MARIADB.splitlines(keepends=True)[11:]
    found = slow("".join(behind))
    assert texts(found) == ["SET autocommit=0"] and left_out(found)[CUT_OFF] == 2


def test_what_was_executed_is_a_statement_and_the_rest_is_counted() -> None:
    assert [(seen.text, seen.line, seen.rest) for seen in general(GENERAL_MARIADB)] == [
        ("", 4, "command Connect"),
        ("SELECT name\n  FROM customer\n WHERE id = 7", 5, ""),
        ("", 8, "command Prepare"),
        ("SELECT 4 FROM t", 9, ""),
        ("", 10, "command Quit"),
    ]
    assert texts(general(GENERAL_MYSQL)) == ["SELECT 1"]


def test_the_last_statement_may_go_on_behind_the_file() -> None:
    log = "\t\t     6 Query\tDELETE FROM t\n"
    assert left_out(general(log)) == {LAST: 1} and texts(general(log, whole=True)) == ["DELETE FROM t"]
    assert texts(general(f"{log}\t\t     7 Quit\t\n")) == ["DELETE FROM t"]


def test_a_line_of_a_statement_is_no_command() -> None:
    assert not general_log_begins(" WHERE id = 7") and not general_log_begins("  5 apples")
    assert general_log_begins("\t\t     5 Quit\t")


def test_a_command_is_known_by_its_form_and_not_by_its_name() -> None:
    log = "".join(
        f"2026-11-22T16:00:00.000000Z\t   {number} {command}\t{text}\n"
        for number, command, text in (
            (11, "Query", "UPDATE t SET a = 1"), (12, "Binlog Dump GTID", "Log: ''"), (13, "Clone", ""),
            (14, "Query", "SELECT 1"), (15, "Group Replication Data Stream subscription", ""),
        )
    )  # fmt: skip
    assert texts(general(log)) == ["UPDATE t SET a = 1", "SELECT 1"]


def test_a_statement_of_sql_is_not_executed_twice() -> None:
    log = (
        "\t\t    11 Query\tprepare s from 'DELETE FROM t WHERE a = ?'\n\t\t    11 Query\texecute s using @n\n"
        "\t\t    12 Query\tSELECT 1\n\t\t    11 Execute\tDELETE FROM t WHERE a = 5\n\t\t    11 Quit\t\n"
    )
    found = general(log)
    assert texts(found) == [
        "prepare s from 'DELETE FROM t WHERE a = ?'",
        "SELECT 1",
        "DELETE FROM t WHERE a = 5",
    ]
    assert left_out(found)[TOLD_TWICE] == 1
    alone = log.replace("\t\t    11 Execute\tDELETE FROM t WHERE a = 5\n", "")
    assert "execute s using @n" in texts(general(alone))


def test_a_log_of_mysql_5_0_has_blanks_in_the_place_of_tabs() -> None:
    log = (
        "070101 12:00:00\t      1 Connect     root@localhost as anonymous on shop\n"
        "\t\t      1 Query       SELECT 1\n  FROM t\n                      1 Query       SELECT 2\n"
        "070101 12:00:01       1 Quit       \n"
    )
    found = general(log)
    assert texts(found) == ["SELECT 1\n  FROM t", "SELECT 2"]
    assert {seen.database for seen in found} == {"shop"} and {seen.session for seen in found} == {"1"}


def test_each_statement_has_its_session_its_moment_and_its_database() -> None:
    found = [(seen.session, seen.at_s, seen.database) for seen in general(GENERAL_MARIADB)]
    assert found[:4] == [("5", AT_S, "shop"), ("6", AT_S, ""), ("5", AT_S, "shop"), ("5", AT_S, "shop")]
    assert found[4][1] == datetime(2026, 11, 22, 6, 0, 1, tzinfo=UTC).timestamp()
    assert [(seen.session, seen.at_s) for seen in general(GENERAL_MYSQL)] == [("8", AT_S)] * 1 + [
        ("8", AT_S + 1e-6)
    ]


def test_a_database_is_that_which_the_session_chose_last() -> None:
    chosen = (
        "\t\t     5 Init DB\tshop\n\t\t     6 Query\tSELECT 1\n\t\t     5 Query\tSELECT 1\n"
        "\t\t     5 Query\tUSE `other`\n\t\t     5 Query\tSELECT 2\n"
        "\t\t     5 Quit\t\n\t\t     5 Query\tSELECT 3\n"
    )
    found = {(seen.session, seen.text): seen.database for seen in general(chosen, whole=True) if seen.text}
    assert found[("6", "SELECT 1")] == "" and found[("5", "SELECT 1")] == "shop"
    assert found[("5", "SELECT 2")] == "other" and found[("5", "SELECT 3")] == ""


COMMAND = "260301 10:00:01\t     6 Query\tDROP TABLE item"
AGAIN = "\t\t     6 Query\tDROP TABLE item"


@pytest.mark.parametrize("line", [COMMAND, AGAIN])
@pytest.mark.parametrize("byte", ["x", " ", "\t", "7", "\r", "Q"])
def test_a_command_of_which_one_byte_is_another_is_no_part_of_the_one_before(line: str, byte: str) -> None:
    head = line.index("DROP")
    for at in range(head):
        spoilt = line[:at] + byte + line[at + 1 :]
        log = f"260301 10:00:00\t     5 Query\tSELECT 1\n{spoilt}\n260301 10:00:02\t     5 Query\tSELECT 2\n"
        found = texts(general(log, whole=True))
        # A number may be another one.
        assert set(found) <= {"SELECT 1", "SELECT 2", "DROP TABLE item", "ROP TABLE item"}, spoilt


@pytest.mark.parametrize("cut", range(len("260301 10:00:01\t     ")))
def test_a_command_that_begins_in_the_midst_shows_that_the_one_before_was_cut(cut: int) -> None:
    log = f"260301 10:00:00\t     5 Query\tDELETE FROM it{COMMAND[cut:]}\n{COMMAND}\n"
    found = general(log, whole=True)
    assert texts(found) == ["DROP TABLE item"] and left_out(found) == {CUT_OFF: 1}


def test_words_behind_numbers_and_tabs_are_no_commands() -> None:
    asked = ["SELECT 5 AS\tx,\n\t\t    6 AS\ty", "SELECT a\n FROM x\n LIMIT 10 OFFSET\t20"]
    log = "".join(f"260301 10:00:00\t     5 Query\t{text}\n" for text in asked)
    assert texts(general(log, whole=True)) == asked


def test_a_command_within_a_line_shows_that_the_one_before_was_cut() -> None:
    for log in (GENERAL_MYSQL, "\t\t     6 Query\tSELECT 1 FROM t\n\t\t     7 Quit\t\n"):
        whole = texts(general(log))
        for at in range(len(log)):
            found = texts(general(log[:at] + log))
            assert set(found) <= {*whole}, log[:at]
