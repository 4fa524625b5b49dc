"""The database below the store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.records.database import open_database
from dbdyno.records.store import Store
from tests.fakes import make_run, make_study


def test_what_failed_halfway_leaves_nothing(url: str) -> None:
    with Store(url):
        pass
    database = open_database(url)
    with pytest.raises(ZeroDivisionError), database.transaction() as execute:
        execute("INSERT INTO dyno_schema VALUES (?)", 99)
        raise ZeroDivisionError
    assert database.execute("SELECT version FROM dyno_schema") == [(1,)]
    with database.transaction() as execute:
        execute("UPDATE dyno_schema SET version = version")
    database.close()


def test_who_reads_does_not_wait_for_who_writes(url: str) -> None:
    with Store(url) as store:
        store.add_run(make_run(make_study()))
    writer = open_database(url)
    with writer.transaction() as execute:
        execute("UPDATE dyno_runs SET finished = ?", True)
        with Store(url) as store:
            assert [summary.finished for summary in store.runs()] == [False]
    writer.close()
    with Store(url) as store:
        assert [summary.finished for summary in store.runs()] == [True]


def test_several_can_make_one_store(tmp_path: Path) -> None:
    code = "import sys; from dbdyno.records.store import Store; print(len(Store(sys.argv[1]).runs()))"
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path / 'store.sqlite'}"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [child.communicate()[0] for child in children] == ["0\n"] * 3


@pytest.mark.parametrize("bad", ["postgresql://me:secret@[::1/x", "postgresql://me:secret@h/x?nonsense=1"])
def test_a_url_that_cannot_be_read_keeps_its_password(bad: str) -> None:
    with pytest.raises(UserError, match="cannot be read") as refused:
        open_database(bad)
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"
