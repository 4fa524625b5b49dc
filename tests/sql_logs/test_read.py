"""What a file is, told by what stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.sql_logs import formats
from dbdyno.sql_logs.read import traffic_of
from tests.sql_logs import mysql_cases
from tests.sql_logs.read_cases import DIGESTS, DIGESTS_AS_JSON, STATEMENTS, VIEW_AS_JSON


@pytest.mark.parametrize(
    ("text", "kind", "digests"),
    [
        (mysql_cases.SLOW_MARIADB, "slow log", 2),
        (mysql_cases.SLOW_MYSQL, "slow log", 1),
        (mysql_cases.GENERAL_MARIADB, "general log", 2),
        (mysql_cases.GENERAL_MYSQL, "general log", 1),
        (STATEMENTS, "pg_stat_statements", 3),
        (VIEW_AS_JSON, "pg_stat_statements", 2),
        (DIGESTS, "statement digests of performance_schema", 2),
        (DIGESTS_AS_JSON, "statement digests of performance_schema", 2),
    ],
)
def test_a_file_is_known_by_what_stands_in_it(tmp_path: Path, text: str, kind: str, digests: int) -> None:
    path = tmp_path / "seen"
    path.write_text(text)
    found = traffic_of([path])
    assert (found.kind, len(found.groups)) == (kind, digests)


def test_what_a_statement_holds_does_not_say_what_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "general.log"
    text = f"INSERT INTO note VALUES ('\n{mysql_cases.SLOW_MYSQL}')"
    path.write_text(
        "".join(f"\t\t     {number} Query\tSELECT 1\n" for number in range(9)) + f"\t\t     9 Query\t{text}\n"
    )
    assert traffic_of([path]).kind == "general log"


def test_calls_and_times_of_the_view_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "seen.csv"
    path.write_text(STATEMENTS)
    found = traffic_of([path])
    first = found.groups[0]
    assert (first.digest, first.count, first.line) == ("SELECT a FROM t WHERE b = ? AND c = ?", 300, 2)
    assert first.took_s == pytest.approx(1.5005) and found.count == 410
    assert found.groups[-1].why_not == "it begins or ends a transaction"


def test_digests_of_mysql_have_a_place_for_each_value_or_a_sample_with_values(tmp_path: Path) -> None:
    path = tmp_path / "seen.tsv"
    path.write_text(DIGESTS)
    found = traffic_of([path])
    told, executed = found.groups
    assert (executed.digest, executed.count) == ("SELECT `a` FROM `t` WHERE `b` = ?", 40)
    assert told.digest == "SELECT COUNT( * ) FROM `t` WHERE `b` = ? AND `c` = ?"
    assert (told.count, told.database, told.unknown) == (300, "shop", 300)
    assert told.took_s == pytest.approx(1.5005)
    assert found.rest == {
        "statement with a list of values that is not told": 23,
        "statement that was prepared, and is counted where it was executed": 2,
        "statement whose text is lost": 7,
        "entry that is cut off": 5,
    }
    path.write_text(DIGESTS_AS_JSON)
    listed, one = traffic_of([path]).groups
    assert (listed.digest, listed.unknown, listed.took_s) == ("SELECT a FROM t WHERE b IN (?, ...)", 0, 2.0)
    assert (one.digest, one.unknown, one.line) == ("SELECT `a` FROM `t` WHERE `b` = ?", 9, 4)


@pytest.mark.parametrize(("text", "days"), [(DIGESTS, "2.5"), (VIEW_AS_JSON, "4"), (STATEMENTS, "")])
def test_how_long_calls_were_counted_is_told_where_the_view_says_so(
    tmp_path: Path, text: str, days: str
) -> None:
    path = tmp_path / "seen"
    path.write_text(text)
    notes = [f"the calls are those of {days} days: divide them by that for a day"] if days else []
    assert [*traffic_of([path]).notes] == notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("SELECT 1;\n", "is no log that Dyno knows; it begins: 'SELECT 1;'"),
        (
            "".join(mysql_cases.SLOW_MARIADB.splitlines(keepends=True)[:3]),
            "holds the head of a log and no statement",
        ),
        ("query,calls\nSELECT,many\n", "line 2: this is no row of query, calls"),
        ("query,calls\n", "holds no statement"),
        ('[{"query": "SELECT 1", "calls": 1},\n {"query": oh}]\n', "line 2: this is no row of JSON"),
        ('[{"query": "SELECT 1", "calls": 1},\n {"calls": 2}]\n', "line 2: this is no row of calls"),
        ("DIGEST_TEXT\tCOUNT_STAR\nSELECT ?\n", "line 2: this is no row of digest_text"),
        (f"{mysql_cases.SLOW_MARIADB.splitlines()[3]}\n", "holds no statement"),
    ],
)
def test_a_file_that_tells_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "seen"
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        traffic_of([path])
    assert said in refused.value.message and refused.value.hint


def test_a_statement_of_the_view_may_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "seen.csv"
    path.write_text(f'query,calls\nSELECT 1,1\n"SELECT\n{"a" * 200_000}",2\n')
    assert traffic_of([path]).count == 3
    monkeypatch.setattr(formats, "FIELD_CHARACTERS_MOST", 100_000)
    with pytest.raises(UserError, match=r"seen\.csv, line 3: this is no row of CSV: field larger"):
        traffic_of([path])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        traffic_of([tmp_path / "nowhere.log"])
