"""SQLite's data for a guest are sound, and answers that are not are found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.engines.sqlite import guest
from dbdyno.engines.sqlite.shell import ASKED


def test_the_data_answer_as_the_invariants_say(tmp_path: Path) -> None:
    [(name, content)] = guest.data().items()
    file = tmp_path / "database"
    file.write_bytes(content)
    with closing(sqlite3.connect(file)) as opened:
        answers = [str(opened.execute(sql).fetchone()[0]) for sql in ASKED.values()]
    assert guest.check(answers).holds and answers[1] != "0"
    assert f"/{name} " in guest.ASK and f"/{guest.PROGRAM} " in guest.ASK


@pytest.mark.parametrize(
    "answers", [[], ["ok", "1", "1"], ["ok", "1", "1", "2"], ["row 3 missing", "1", "1", "1"]]
)
def test_answers_that_lack_a_sum_or_differ_are_no_proof(answers: list[str]) -> None:
    assert not guest.check(answers).holds
