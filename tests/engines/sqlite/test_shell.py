"""A shell that acknowledges commits is killed and asked: a right one has them all, a wrong one is found."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.engines.sqlite import shell
from dbdyno.engines.sqlite.shell import ASKED
from dbdyno.errors import ServerFailed
from dbdyno.obtain.installation import Installation
from dbdyno.study.soak import Act

SHELL = """
import sqlite3, sys
fault, file = sys.argv[1], sys.argv[-1]
database = sqlite3.connect(file, isolation_level=None)
lines = iter(sys.stdin.readline, "") if sys.stdin else ()
script, commits = "", 0
for line in lines:
    script += line
    while sqlite3.complete_statement(script):
        end = next(i for i in range(1, len(script) + 1)
                   if script[i - 1] == ";" and sqlite3.complete_statement(script[:i]))
        statement, script = script[:end], script[end:]
        if "COMMIT" in statement:
            commits += 1
            if fault == "dies" and commits == 5:
                sys.exit("Error: it died")
            if fault == "loses" and commits % 7 == 0:
                statement = "ROLLBACK"
            if fault == "halves" and commits % 7 == 0:
                database.execute("UPDATE branch SET balance = balance + 1")
        for row in database.execute(statement):
            print(*row, sep="|")
    sys.stdout.flush()
"""
"""A shell in Python, which takes statements as SQLite's own does, with a fault of its own."""


def installed(folder: Path, fault: str) -> Installation:
    program = folder / "shell.py"
    program.write_text(SHELL)
    return Installation("sqlite", "3.40.1", "a test", folder, (sys.executable, str(program), fault), "digest")


@pytest.mark.parametrize("act", [Act.KILL, Act.STOP])
def test_a_right_shell_has_all_that_it_acknowledged(tmp_path: Path, act: Act) -> None:
    own = installed(tmp_path, "none")
    shell.make(own, tmp_path)
    for _ in range(2):
        found = shell.round_of(own, tmp_path, act, 0.1)
        assert found.recovery.acknowledged >= shell.LEAST
        assert (found.recovery.lost, found.recovery.damage) == (0, "")
        assert found.recovery.acknowledged <= found.recovery.present <= found.recovery.acknowledged + 1
        assert {check.name: check.holds for check in found.checks} == {
            "sums_agree": True,
            "read_by_this_machine": True,
        }


def test_a_commit_that_is_gone_is_found(tmp_path: Path) -> None:
    own = installed(tmp_path, "loses")
    shell.make(own, tmp_path)
    found = shell.round_of(own, tmp_path, Act.KILL, 0.1).recovery
    assert found.lost == found.acknowledged // 7 > 0
    assert "acknowledged transactions were gone" in found.fault


def test_sums_that_do_not_agree_are_found(tmp_path: Path) -> None:
    own = installed(tmp_path, "halves")
    shell.make(own, tmp_path)
    found = shell.round_of(own, tmp_path, Act.STOP, 0.1)
    assert found.recovery.damage.startswith("sums_agree: the shell says")


def test_a_shell_that_dies_under_the_load_is_told_with_its_words(tmp_path: Path) -> None:
    own = installed(tmp_path, "dies")
    shell.make(own, tmp_path)
    with pytest.raises(ServerFailed, match="failed under the load: Error: it died"):
        shell.round_of(own, tmp_path, Act.STOP, 0.1)


def test_the_data_answer_as_the_invariants_say(tmp_path: Path) -> None:
    [(name, content)] = shell.data().items()
    file = tmp_path / "database"
    file.write_bytes(content)
    with closing(sqlite3.connect(file)) as opened:
        answers = [str(opened.execute(sql).fetchone()[0]) for sql in ASKED.values()]
    assert shell.check(answers).holds and answers[1] != "0"
    assert f"/{name} " in shell.ASK and f"/{shell.PROGRAM} " in shell.ASK


@pytest.mark.parametrize(
    "answers", [[], ["ok", "1", "1"], ["ok", "1", "1", "2"], ["row 3 missing", "1", "1", "1"]]
)
def test_answers_that_lack_a_sum_or_differ_are_no_proof(answers: list[str]) -> None:
    assert not shell.check(answers).holds
