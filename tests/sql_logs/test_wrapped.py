"""Logs that another log holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.seen import CUT_OFF, LAST, LogReading, SeenStatement
from dbdyno.sql_logs.wrapped import NOT_CERTAIN
from tests.sql_logs.mysql_cases import SLOW_MYSQL

PREFIX = "2026-03-01 10:00:01.100 UTC [{}] app@shop "
STATEMENT = "SELECT id, name\n  FROM item\n WHERE id = 5"


def read(tmp_path: Path, text: str, whole: bool = False) -> list[SeenStatement]:
    path = tmp_path / "log"
    path.write_text(text)
    return list(log_of([path], LogReading(whole=whole)).statements)


def texts(found: list[SeenStatement]) -> list[str]:
    return [seen.text for seen in found if not seen.rest]


def message(process: int, text: str) -> str:
    """A message as the server writes it to a file."""
    tabbed = text.replace("\n", "\n\t")
    return f"{PREFIX.format(process)}LOG:  duration: 1.500 ms  statement: {tabbed}"


def pieces(head: str, process: int, number: int, text: str) -> list[str]:
    """A message as the server hands it to syslog."""
    lines = message(process, text).split("\n")
    return [
        f"{head.format(process)}[{number}-{piece}] {line}".replace("\t", "#011") + "\n"
        for piece, line in enumerate(lines, 1)
    ]


HEADS = {
    "syslog": "Mar  1 10:00:01 db1 postgres[{}]: ",
    "syslog with exact times": "2026-03-01T10:00:01.100000+00:00 db1 postgres[{}]: ",
    "RFC 5424": "<134>1 2026-03-01T10:00:01.100Z db1 postgres {} - - ",
    "Heroku": "2026-03-01T10:00:01.100000+00:00 app[postgres.{}]: [DATABASE] ",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_pieces_are_joined_by_their_process_and_number(tmp_path: Path, head: str) -> None:
    one, other = pieces(head, 4101, 7, STATEMENT), pieces(head, 4102, 3, "SELECT 1")
    log = [*one[:2], *other, one[2], *pieces(head, 4101, 8, "SELECT 2"), *pieces(head, 4102, 4, "SELECT 3")]
    found = read(tmp_path, "".join(log))
    assert sorted(texts(found)) == ["SELECT 1", STATEMENT]
    assert [seen.rest for seen in found if seen.rest] == [LAST, LAST]
    assert {(seen.session, seen.database) for seen in found if not seen.rest} == {
        ("4101", "shop"), ("4102", "shop")
    }  # fmt: skip
    assert len(texts(read(tmp_path, "".join(log), whole=True))) == 4


def test_a_piece_that_is_lost_takes_its_message_along(tmp_path: Path) -> None:
    head = HEADS["syslog"]
    log = pieces(head, 4101, 7, STATEMENT)
    for lost in range(len(log)):
        rest = "".join(
            [*log[:lost], *log[lost + 1 :], *pieces(head, 4101, 8, "SELECT 2"), *pieces(head, 4101, 9, "x")]
        )
        found = read(tmp_path, rest)
        if lost < len(log) - 1:
            assert texts(found) == ["SELECT 2"] and CUT_OFF in [seen.rest for seen in found]


@pytest.mark.parametrize("next_number", [3, 7, 9])
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_message_before_a_gap_in_the_numbers_is_left_out(
    tmp_path: Path, head: str, next_number: int
) -> None:
    first = pieces(head, 4101, 7, "DELETE FROM item\n WHERE id = 5")[0]
    log = [
        first,
        *pieces(head, 4101, next_number, "SELECT 2"),
        *pieces(head, 4101, next_number + 1, "SELECT 3"),
    ]
    found = read(tmp_path, "".join(log))
    assert texts(found) == ["SELECT 2"]
    assert [seen.rest for seen in found if seen.rest] == [CUT_OFF, LAST]


def test_a_message_that_was_cut_by_its_length_is_joined(tmp_path: Path) -> None:
    text = message(4101, "SELECT " + ", ".join(f"column_{number}" for number in range(200)))
    at = text.rindex(" ", 0, 900)
    head = HEADS["syslog"].format(4101)
    log = [f"{head}[7-1] {text[:at]}\n", f"{head}[7-2] {text[at:1500]}\n", f"{head}[7-3] {text[1500:]}\n"]
    found = read(tmp_path, "".join([*log, *pieces(HEADS["syslog"], 4101, 8, "x")]))
    assert texts(found) == [text.partition("statement: ")[2]]


def test_characters_that_syslog_may_have_changed_are_not_guessed(tmp_path: Path) -> None:
    head = HEADS["syslog"]
    log = (
        pieces(head, 4101, 7, "SELECT\t1") + pieces(head, 4101, 8, "SELECT '\t'") + pieces(head, 4101, 9, "x")
    )
    found = read(tmp_path, "".join(log))
    assert texts(found) == ["SELECT\t1"] and NOT_CERTAIN in [seen.rest for seen in found]


def test_journald_holds_pieces_too(tmp_path: Path) -> None:
    lines = [*message(4101, STATEMENT).split("\n"), message(4101, "SELECT 2")]
    log = "".join(json.dumps({"MESSAGE": line, "_PID": "4101"}) + "\n" for line in lines)
    assert texts(read(tmp_path, log)) == [STATEMENT]


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_line_that_is_damaged_may_be_the_end_of_any_message(tmp_path: Path, head: str) -> None:
    log = pieces(head, 4101, 7, "DELETE FROM item\n WHERE id = 5")
    damaged = [log[0], f"{log[1][5:19]}\n", *pieces(head, 4101, 8, "SELECT 2"), *pieces(head, 4101, 9, "x")]
    found = read(tmp_path, "".join(damaged))
    assert texts(found) == ["SELECT 2"] and [seen.rest for seen in found].count(CUT_OFF) == 2


def test_lines_of_other_programs_disturb_no_message(tmp_path: Path) -> None:
    head = HEADS["syslog"]
    first, *rest = pieces(head, 4101, 7, STATEMENT)
    log = [first, "Mar  1 10:00:01 db1 kernel: [ 1.5] eth0: up\n", *rest, *pieces(head, 4101, 8, "x")]
    found = read(tmp_path, "".join(log))
    assert texts(found) == [STATEMENT] and [seen.rest for seen in found if seen.rest] == [LAST]


def test_journald_in_lines_is_read(tmp_path: Path) -> None:
    head = "2026-03-01T10:00:01+0000 db1 postgres[4101]: "
    log = "-- Boot 0123456789abcdef --\n" + "".join(
        f"{head}{line}\n" for line in (*message(4101, STATEMENT).split("\n"), message(4101, "SELECT 2"))
    )
    found = read(tmp_path, log)
    assert texts(found) == [STATEMENT] and [seen.rest for seen in found if seen.rest] == [LAST]


def test_texts_of_rds_are_read(tmp_path: Path) -> None:
    line = (
        "2026-03-01 10:00:0{} UTC:10.0.0.{}(4000):app@shop:[41{}]:LOG:  duration: 1.500 ms  statement: {}\n"
    )
    log = "".join(line.format(n, n, n, text) for n, text in enumerate([*(["SELECT 1\n\tFROM t"] * 4), "x"]))
    found = read(tmp_path, log)
    assert texts(found) == ["SELECT 1\nFROM t"] * 4 and {seen.database for seen in found} == {"shop", ""}


OBJECTS = {
    "Docker": ("log", "lng"), "Cloud SQL": ("textPayload", "textPayloae"),
    "Azure": ("properties", "propertiet"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_without_its_text_is_counted(tmp_path: Path, kind: str) -> None:
    every = [wrapped(kind, f"{message(n, STATEMENT)}\n") for n in (4101, 4102, 4103)]
    name, other = OBJECTS[kind]
    every[1] = other.join(every[1].rsplit(name, 1))
    found = read(tmp_path, "".join(every), whole=True)
    # What was begun before a damaged line may go on in it.
    assert texts(found) == [STATEMENT] * (1 if kind == "Azure" else 2)
    assert CUT_OFF in [seen.rest for seen in found]


def wrapped(kind: str, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if kind == "Docker":
        return "".join(json.dumps({"log": line, "stream": "stderr", "time": "x"}) + "\n" for line in lines)
    if kind == "Kubernetes":
        return "".join(f"2026-03-01T10:00:01.1Z stderr F {line}" for line in lines)
    if kind == "Cloud SQL":
        return "".join(json.dumps({"textPayload": line.rstrip("\n")}) + "\n" for line in lines)
    return json.dumps({"category": "PostgreSQLLogs", "properties": {"message": text.rstrip("\n")}}) + "\n"


@pytest.mark.parametrize("kind", ["Docker", "Kubernetes", "Cloud SQL", "Azure"])
def test_lines_that_others_hold_are_read_as_a_file_is(tmp_path: Path, kind: str) -> None:
    log = wrapped(kind, f"{message(4101, STATEMENT)}\n") + wrapped(kind, f"{message(4102, 'SELECT 1')}\n")
    found = read(tmp_path, log)
    assert [(seen.text, seen.session) for seen in found if not seen.rest] == [(STATEMENT, "4101")]
    for at in range(1, log.index("\n")):
        assert set(texts(read(tmp_path, log[:at] + log))) <= {STATEMENT}, log[:at]


def test_a_slow_log_may_be_in_a_containers(tmp_path: Path) -> None:
    assert texts(read(tmp_path, wrapped("Docker", SLOW_MYSQL))) == ["SELECT 1"]
    long = wrapped("Docker", SLOW_MYSQL).replace("SELECT 1;\\n", "SEL", 1)
    long += json.dumps({"log": "ECT 1;\n", "stream": "stderr", "time": "x"}) + "\n"
    assert texts(read(tmp_path, long)) == ["SELECT 1"]


def test_a_log_that_goes_back_in_time_is_refused(tmp_path: Path) -> None:
    log = "".join(
        json.dumps({"textPayload": message(1, "SELECT 1"), "timestamp": f"2026-03-01T10:00:0{second}Z"})
        + "\n"
        for second in (3, 2, 1)
    )
    with pytest.raises(UserError, match="backwards"):
        read(tmp_path, log)


def test_the_records_of_cloudnativepg_are_entries(tmp_path: Path) -> None:
    record = {
        "log_time": "2026-03-01 10:00:01.100 UTC", "database_name": "shop", "session_id": "69a4.1",
        "error_severity": "LOG", "message": f"duration: 1.500 ms  statement: {STATEMENT}",
    }  # fmt: skip
    found = read(tmp_path, json.dumps({"level": "info", "msg": "record", "record": record}) + "\n{\n")
    assert texts(found) == [STATEMENT] and (found[-1].session, found[-1].database) == ("69a4.1", "shop")
