"""A client gets the whole text, and what it refuses is told with its place."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.user_data import feed as feeding
from dbdyno.user_data.dump import dump_at, text_of
from dbdyno.user_data.feed import Client, environment, feed

REFUSAL = re.compile(r"ERROR at line (?P<line>\d+): (?P<message>.*)")
TAKES = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
REFUSES = """
import sys
for number, line in enumerate(sys.stdin, 1):
    if "wrong" in line:
        sys.exit(f"ERROR at line {number}: this is no statement")
"""


def _client(program: str, *arguments: str) -> Client:
    return Client([sys.executable, "-c", program, *arguments], environment(("PG",)), REFUSAL)


def test_all_lines_arrive_as_they_are_edited(tmp_path: Path) -> None:
    lines = b"".join(b"INSERT INTO a VALUES (%d);\n" % number for number in range(200_000)) + b"-- no newline"
    (tmp_path / "dump").write_bytes(lines)
    dump = dump_at(tmp_path / "dump")
    seen: list[bytes] = []

    def edit(pieces: Iterator[bytes]) -> Iterator[bytes | Client]:
        for piece in pieces:
            seen.append(piece)
            yield piece.upper()

    with text_of(dump) as text:
        feed(dump, text, _client(TAKES, str(tmp_path / "taken")), lambda _: None, edit)
    assert (tmp_path / "taken").read_bytes() == lines.upper()
    assert len(seen) > 2


def test_a_refused_statement_is_told_with_its_line_far_into_the_text(tmp_path: Path) -> None:
    lines = [b"INSERT INTO a VALUES (%d);\n" % number for number in range(200_000)]
    lines[150_000] = b"something wrong;\n"
    (tmp_path / "dump").write_bytes(b"".join(lines))
    dump = dump_at(tmp_path / "dump")
    with pytest.raises(UserError) as raised, text_of(dump) as text:
        feed(dump, text, _client(REFUSES), lambda _: None)
    expected = f"{tmp_path / 'dump'}:150001: this is no statement, at `something wrong;`"
    assert raised.value.message == expected


def test_another_client_goes_on_where_it_is_told_and_refusals_keep_their_lines(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(b"one\ntwo\nthree\nsomething wrong;\n")
    dump = dump_at(tmp_path / "dump")

    def edit(pieces: Iterator[bytes]) -> Iterator[bytes | Client]:
        whole = b"".join(pieces)
        yield whole[:8]
        yield replace(_client(REFUSES), first_line=3)
        yield whole[8:]

    taken = _client(TAKES, str(tmp_path / "taken"))
    with pytest.raises(UserError, match=r"dump:4: this is no statement"), text_of(dump) as text:
        feed(dump, text, taken, lambda _: None, edit)
    assert (tmp_path / "taken").read_bytes() == b"one\ntwo\n"


def test_a_client_that_ends_before_the_text_does_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(b"SELECT 1;\n" * 400_000)
    dump = dump_at(tmp_path / "dump")
    with pytest.raises(UserError, match="dump: "), text_of(dump) as text:
        feed(dump, text, _client("pass"), lambda _: None)


def test_how_far_it_is_is_told_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dump").write_bytes(b"SELECT 1;\n" * 400_000)
    monkeypatch.setattr(feeding, "TOLD_EVERY_S", 0.0)
    told: list[str] = []
    dump = dump_at(tmp_path / "dump")
    with text_of(dump) as text:
        feed(dump, text, _client(TAKES, str(tmp_path / "taken")), told.append)
    assert len(told) == 4
    assert told[0].startswith("loading dump: 1 of 4 MB read, about ")
    assert told[-1] == "loading dump: 4 of 4 MB read, about 0 s left"
