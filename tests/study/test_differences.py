"""Where two versions of a file differ, in words."""

from __future__ import annotations

import hashlib

import pytest

from dbdyno.study.differences import OF_THE_LOAD, difference
from dbdyno.study.files import FileKind, StudyFile

PAY = '[[transactions]]\nname = "pay"\nstatements = ["SELECT 1", "UPDATE a SET b = 1"]\n'


def file(text: str | None, path: str = "w.toml", kind: FileKind = FileKind.WORKLOAD) -> StudyFile:
    content = (text or "large").encode()
    digest = hashlib.sha256(content).hexdigest()
    return StudyFile(
        kind=kind, path=path, place=f"/x/{path}", size_bytes=len(content), digest=digest, text=text
    )


@pytest.mark.parametrize(
    ("path", "one", "other", "told"),
    [
        (
            "w.toml",
            PAY,
            PAY.replace("b = 1", "b = 2"),
            'w.toml, transaction "pay", statement 2: UPDATE a SET b = 1 -> UPDATE a SET b = 2',
        ),
        (
            "w.toml",
            '[[tables]]\nname = "a"\nrows = 5\n',
            '[[tables]]\nname = "a"\nrows = 6\n',
            'w.toml, table "a", rows: 5 -> 6',
        ),
        (
            "w.toml",
            '[setup]\nstatements = ["A"]\n',
            '[setup]\nstatements = ["A", "B"]\n',
            "w.toml, setup, statement 2: nothing -> B",
        ),
        (
            "w.sql",
            "SELECT 1;\nSELECT 2;\n",
            "SELECT 1;\nSELECT 3;\n",
            "w.sql, statement 2: SELECT 2 -> SELECT 3",
        ),
        ("w.lua", "a()\nb()\n", "a()\nc()\n", "w.lua, line 2: b() -> c()"),
    ],
)
def test_the_first_place_that_differs_is_named(path: str, one: str, other: str, told: str) -> None:
    assert difference([file(one, path)], [file(other, path)]) == told


def test_a_comment_in_toml_is_no_difference_and_what_is_not_known_is_none() -> None:
    assert not difference([file(PAY)], [file(f"# Why.\n{PAY}")])
    assert not difference(None, [file(PAY)])


def test_what_has_no_text_differs_by_its_hash_and_a_file_may_be_on_one_side_alone() -> None:
    assert "bytes, sha256" in difference([file(None, "v.npy")], [file("other", "v.npy")])
    assert difference([], [file(PAY)]).startswith("w.toml: nothing -> ")


def test_files_of_the_server_are_no_part_of_the_load() -> None:
    one, two = ([file(text, "a.patch", FileKind.PATCH)] for text in ("one", "two"))
    assert difference(one, two) and not difference(one, two, OF_THE_LOAD)
