"""A log becomes a recording: sessions, moments, and what cannot be played."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.formats import FORMATS, format_of
from dbdyno.sql_logs.record import in_time, record
from dbdyno.sql_logs.recording import (
    BUFFER_BYTES,
    HEADER,
    NS_PER_S,
    SESSION,
    STATEMENT,
    UNKNOWN,
    About,
    about,
)
from dbdyno.sql_logs.seen import SeenStatement
from tests.sql_logs.read_cases import Given

KINDS = {Dialect.MYSQL: "slow log", Dialect.POSTGRESQL: "PostgreSQL log"}
BEGIN_S = 1_795_363_200.25
Told = tuple[float, str, int | None]


def seen(session: str, at_s: float, text: str = "", **rest: object) -> SeenStatement:
    return SeenStatement(text, 1, session=session, at_s=BEGIN_S + at_s, **rest)  # type: ignore[arg-type]


def made(
    log: list[SeenStatement], folder: Path, database: str = "", dialect: Dialect = Dialect.MYSQL
) -> Path:
    path = folder / "log.replay"
    path.unlink(missing_ok=True)
    [kind] = [kind for kind in FORMATS if kind.name == KINDS[dialect]]
    record(Given(kind, log), "slow.log", path, database)
    return path


def sessions_in(path: Path) -> list[list[Told]]:
    """The statements of each session: when it was due, its text, and its rows. Follows the file's form, not
    the code that wrote it."""
    content, said = path.read_bytes(), about(path)
    _, _, _, offset, count, _, _ = HEADER.unpack_from(content)
    sessions = []
    for number in range(count):
        _, _, at, size, _, statements = SESSION.unpack_from(content, offset + number * SESSION.size)
        found: list[Told] = []
        while at:
            due, _, next_at, next_size, _, _, _, rows, _ = STATEMENT.unpack_from(content, at)
            text = content[at + STATEMENT.size : at + size].decode()
            found.append(((due - said.origin_ns) / NS_PER_S, text, None if rows == UNKNOWN else rows))
            at, size = next_at, next_size
        assert len(found) == statements
        sessions.append(found)
    return sessions


def test_each_session_keeps_its_statements_in_their_order_and_at_their_times(tmp_path: Path) -> None:
    log = [
        seen("8", 0.5, "BEGIN", took_s=0.001),
        seen("7", 0.0, "SELECT SLEEP(1)", took_s=1.0, rows=1),
        seen("8", 1.125, "UPDATE t SET a = 1", took_s=0.25, rows=0, affected=3),
        seen("8", 2.0, "COMMIT", took_s=0.5),
        seen("7", 3.0, rest="command Quit"),
    ]
    path = made(log, tmp_path)
    assert sessions_in(path) == [
        [(0.0, "SELECT SLEEP(1)", 1)],
        [(0.5, "BEGIN", None), (1.125, "UPDATE t SET a = 1", None), (2.0, "COMMIT", None)],
    ]
    said = about(path)
    assert (said.sessions, said.count, said.open_most, said.protocol) == (2, 4, 2, "mysql")
    assert (said.length_s, said.began_unix_s, said.whole_seconds) == (3.0, BEGIN_S, False)
    digests = {kind.digest: said.kinds[kind.kind] for kind in said.statements}
    assert digests["UPDATE t SET a = ?"] == "update"
    assert digests["COMMIT"] == "commit"


def test_a_number_of_a_connection_that_comes_again_is_another_session(tmp_path: Path) -> None:
    log = [
        seen("7", 0.0, rest="command Connect"),
        seen("7", 0.125, "SELECT 1"),
        seen("7", 1.0, rest="command Quit"),
        seen("7", 2.0, "SELECT 2"),
        seen("7", 3.0, rest="command Connect"),
        seen("7", 3.5, "SELECT 3"),
    ]
    path = made(log, tmp_path)
    assert [[text for _, text, _ in session] for session in sessions_in(path)] == [
        ["SELECT 1"],
        ["SELECT 2"],
        ["SELECT 3"],
    ]
    assert about(path).open_most == 1


def test_whole_seconds_are_spread_and_no_statement_overtakes_its_session(tmp_path: Path) -> None:
    log = [SeenStatement(f"SELECT {place}", 1, 0.001, session="7", at_s=100.0) for place in range(4)]
    log += [SeenStatement("SELECT 4", 1, 0.001, session="7", at_s=101.0)]
    path = made(log, tmp_path)
    [session] = sessions_in(path)
    assert [at_s for at_s, _, _ in session] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert about(path).whole_seconds
    slow = [SeenStatement("SELECT SLEEP(5)", 1, 5.0, session="7", at_s=100.0), *log[1:3]]
    assert [at_s for at_s, _, _ in sessions_in(made(slow, tmp_path))[0]] == [0.0, 5.0, 5.001]


def test_what_cannot_be_played_is_left_out_and_counted(tmp_path: Path) -> None:
    log = [
        seen("7", 0.0, "SELECT 1"),
        seen("7", 0.5, "KILL 8"),
        seen("7", 0.5, "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"),
        seen("7", 0.5, "SELECT 1", database="other"),
        seen("", 0.5, "SELECT 1"),
        seen("7", 0.5, "SELECT '\udc89PNG'"),
        seen("7", 0.5, rest="command Ping"),
    ]
    path = made(log, tmp_path, database="shop")
    assert about(path).left_out == {
        "that end a connection or the server": 1,
        "that read or write a file of the client's": 1,
        "in another database": 1,
        "with bytes that are no UTF-8, which the driver cannot send": 1,
        "without a session or a time": 1,
        "command Ping": 1,
    }
    places = [seen("7", 0.0, "SELECT $1"), seen("7", 1.0, "SELECT 1")]
    said = about(made(places, tmp_path, dialect=Dialect.POSTGRESQL))
    assert (said.left_out, said.protocol) == ({"whose values are not logged": 1}, "postgresql")
    prepared = ["PREPARE q AS SELECT $1", "EXECUTE q(5)"]
    kept = made([seen("7", 0.0, text) for text in prepared], tmp_path, dialect=Dialect.POSTGRESQL)
    assert [text for _, text, _ in sessions_in(kept)[0]] == prepared
    with pytest.raises(UserError, match="one of every 100 statements alone"):
        made([seen("7", 0.0, "SELECT 1", times=100, sampled=True)], tmp_path)


def test_a_log_without_sessions_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="1 without a session") as refused:
        made([SeenStatement("SELECT 1", 1)], tmp_path)
    assert refused.value.hint
    assert not list(tmp_path.iterdir())


def test_a_recording_larger_than_its_buffer_is_whole(tmp_path: Path) -> None:
    text = "SELECT '" + "x" * (BUFFER_BYTES // 3) + "'"
    log = [seen(str(place % 3), place / 8, text) for place in range(12)]
    assert [len(session) for session in sessions_in(made(log, tmp_path))] == [4, 4, 4]


def test_what_is_no_recording_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = made([seen("7", 0.0, "SELECT 1")], tmp_path)
    whole = path.read_bytes()
    for content, message in (
        (b"", "is no recording"),
        (b"SELECT 1;" * 10, "is no recording"),
        (whole[:-1], "cut short"),
        (whole[:8] + b"\x09" + whole[9:], "version 9"),
        (whole[:32] + bytes(16) + whole[48:], "never finished"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=message) as refused:
            about(path)
        assert "dyno init replay" in refused.value.hint


@given(st.lists(st.tuples(st.sampled_from("123"), st.floats(0, 100, width=16)), min_size=1, max_size=40))
def test_sessions_never_go_back_and_lose_nothing(asked: list[tuple[str, float]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = [seen(session, at_s, f"SELECT {place}") for place, (session, at_s) in enumerate(asked)]
        sessions = sessions_in(made(log, Path(folder)))
    assert sum(map(len, sessions)) == len(asked)
    for session in sessions:
        times = [at_s for at_s, _, _ in session]
        assert times == sorted(times)


def test_entries_without_a_moment_do_not_stop_those_that_have_one() -> None:
    from collections import Counter

    left_out: Counter[str] = Counter()
    log = [
        SeenStatement("SELECT 1", 1),
        seen("7", 0.0, "SELECT 2"),
        SeenStatement("", 1, rest="command Quit"),
    ]
    assert [told.seen.text for told in in_time(log, left_out)] == ["SELECT 2"]
    assert left_out == {"without a session or a time": 1, "command Quit": 1}


def test_a_slow_log_tells_rows() -> None:
    log = """\
# Time: 2026-11-22T16:00:00.500000Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.001500  Lock_time: 0.000002 Rows_sent: 12  Rows_examined: 30
SET timestamp=1795363200;
SELECT 1;
# User@Host: root[root] @ localhost []
# Thread_id: 6  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 5  Bytes_sent: 0
SET timestamp=1795363200;
DELETE FROM t;
"""
    kind = format_of(log.splitlines())
    assert kind is not None
    found = list(kind.statements(list(enumerate(log.splitlines(keepends=True), 1))))
    assert [(one.rows, one.affected) for one in found] == [(12, None), (0, 5)]


def test_what_a_recording_says_is_read_back() -> None:
    said = About(
        protocol="mysql",
        source="slow.log",
        log="slow log",
        began_unix_s=1.5,
        origin_ns=5,
        length_ns=2 * NS_PER_S,
        sessions=1,
        open_most=1,
        count=1,
        whole_seconds=False,
        databases=("",),
        kinds=("select",),
        statements=(),
        left_out={},
    )
    assert About.model_validate_json(said.model_dump_json()) == said
    assert said.length_s == 2.0
