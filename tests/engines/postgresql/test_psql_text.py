"""Statements and commands are told from what only looks like them, wherever a script is cut into pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.engines.postgresql import psql_text
from dbdyno.engines.postgresql.psql_text import Script, ScriptSegment, SegmentKind

LINES = (
    b"SET transaction_timeout = 0;",
    b"\\connect shop",
    b"\\restrict abc",
    b"\\unrestrict abc",
    b"CREATE ROLE ann;",
    b"CREATE DATABASE shop WITH TEMPLATE = template0;",
    b"ALTER TABLE t OWNER TO ann;",
    b"-- it's a comment",
    b"/* begun",
    b"$a$",
    b"'",
    b"\\\\.",
    b"COPY t FROM stdin;",
    b" two\twords ",
    b"",
)
"""What is data, and reads like what is left out of a dump or changes how it is read."""
BOXES = {
    "copy": (b"COPY t (a) FROM stdin;\n", b"\\.\n"),
    "plain": (b"INSERT INTO t VALUES ('", b"');\n"),
    "escaped": (b"INSERT INTO t VALUES (E'", b"');\n"),
    "dollar": (b"DO $body$", b"$body$;\n"),
    "comment": (b"/* /* */", b"*/\n"),
    "identifier": (b'SELECT 1 AS "', b'";\n'),
}
MADE = (b"SET a = 1;", b"\\connect other", b"SELECT 'one;two';")


def _in_box(box: str, lines: list[bytes], ending: bytes) -> bytes:
    begins, ends = BOXES[box]
    text = ending.join([*lines, b""] if box == "copy" else lines)
    if box == "plain":
        text = text.replace(b"'", b"''")
    elif box == "escaped":
        text = text.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    elif box == "comment":
        text = text.replace(b"/*", b"//")
    return begins + text + ends.replace(b"\n", ending)


def _read(text: bytes, size: int) -> list[ScriptSegment]:
    pieces: Iterator[bytes] = (text[at : at + size] for at in range(0, len(text), size))
    return list(Script().segments(pieces))


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(BOXES)), st.lists(st.sampled_from(LINES), max_size=4)), max_size=5
    ),
    st.integers(1, 200),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
def test_what_lies_in_data_texts_and_comments_is_no_statement(
    boxes: list[tuple[str, list[bytes]]], size: int, ending: bytes, has_last_newline: bool
) -> None:
    made = ending.join(MADE) + ending
    text = made + b"".join(_in_box(box, lines, ending) + made for box, lines in boxes)
    text = text if has_last_newline else text.rstrip(b"\r\n")
    segments = _read(text, size)
    assert b"".join(segment.text for segment in segments) == text
    told = [segment.text.rstrip(b"\r") for segment in segments if segment.kind is not SegmentKind.OTHER]
    boxed = [one for one in told if one.startswith((b"COPY", b"INSERT", b"DO", b"SELECT 1"))]
    assert len(boxed) == sum(box != "comment" for box, _ in boxes)
    assert [one for one in told if one not in boxed] == [*MADE] * (len(boxes) + 1)


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_a_very_long_line_is_read_in_parts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psql_text, "LINE_BYTES_MOST", 60)
    monkeypatch.setattr(psql_text, "MARGIN_BYTES", 40)
    text = b"INSERT INTO t VALUES ('%s', $a$%s$a$, E'%s\\'');SET a = 1;\n" % ((b"x;y ''" * 50,) * 3)
    told = [segment.text for segment in _read(text, size) if segment.kind is SegmentKind.STATEMENT]
    assert told[-1] == b"SET a = 1;"


SPECIAL = {
    # Only where the server says so is a backslash of a plain text one that escapes.
    b"SET standard_conforming_strings = off;\nSELECT 'a\\';\nSET b = 1;';\nSET c = 1;\n": 3,
    b"SELECT 'a\\';\nSET b = 1;\n": 2,
    # The second byte of a letter of SJIS may be a backslash.
    b"SET client_encoding = 'SJIS';\nSELECT E'\x83\x5c';\nSET b = 1;\n": 3,
    b"SELECT E'\\x83\\'\nSET b = 1;\n';\n": 1,
    # A text of that kind goes on behind the end of a line.
    b"SELECT E'a'\n  'b\\'\nSET b = 1;\n';\n": 1,
    b"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;\n": 1,
    b"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);\n": 1,
    b"SELECT 1\\; COPY t FROM stdin;\nSET b = 1;\n\\.\nSET c = 1;\n": 2,
    b"COPY t FROM stdin; SELECT 1;\nSET b = 1;\n\\.\n": 2,
    b"COPY t FROM stdin;\nSET b = 1;\n": 1,
    b"SELECT name'a' FROM t;\n": 1,
    b"SELECT a$b$ FROM t;\nSET b = 1;\n-- $b$\n": 2,
    b"\xef\xbb\xbfSET a = 1;\n": 1,
}


@pytest.mark.parametrize("text", sorted(SPECIAL))
def test_a_script_is_read_by_the_rules_of_psql(text: bytes) -> None:
    for size in (1, 2, len(text)):
        told = [segment for segment in _read(text, size) if segment.kind is SegmentKind.STATEMENT]
        assert len(told) == SPECIAL[text], told


def test_a_command_within_a_statement_is_not_told_as_one() -> None:
    text = b"SELECT 1 \\connect shop\n;\n  \\connect shop\n\\connect shop\n"
    commands = [segment.text for segment in _read(text, 5) if segment.kind is SegmentKind.COMMAND]
    assert commands == [b"\\connect shop"]
