"""The database below the store."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.records import database
from dbdyno.records import database as below
from dbdyno.records import store as store_module
from dbdyno.records.database import Spool, open_database
from dbdyno.records.place import URL_HINT
from dbdyno.records.store import Store
from tests.fakes import make_run, make_study
from tests.records.store_cases import make_record

MAKING_S = 120
"""Far longer than making a store takes, so that a child that hangs fails the test."""


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
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for child in children:
        said, complaint = child.communicate(timeout=MAKING_S)
        assert (child.returncode, said) == (0, "0\n"), complaint


@pytest.fixture
def claimed(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A new store's file that another is about to write, with no write-ahead log yet."""
    with closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_a_new_store_that_another_claims_is_asked_for_again(
    tmp_path: Path, claimed: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        claimed.execute("COMMIT")
        claimed.execute("PRAGMA journal_mode=WAL")

    monkeypatch.setattr("time.sleep", wait)
    opened = open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")
    assert len(waits) == 1 and opened.execute("PRAGMA journal_mode") == [("wal",)]
    opened.close()


def test_a_new_store_that_stays_claimed_is_said_to_be_locked(
    tmp_path: Path, claimed: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(below, "LOCKED_S", 0.0)
    with pytest.raises(DynoError, match="locked"):
        open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")


def test_a_transaction_that_cannot_be_committed_leaves_none_open(url: str) -> None:
    database = open_database(url)
    key = "(of_it INTEGER REFERENCES it DEFERRABLE INITIALLY DEFERRED)"
    with database.transaction() as execute:
        execute("CREATE TABLE it (one INTEGER PRIMARY KEY)")
        execute(f"CREATE TABLE its {key}")
    with pytest.raises(DynoError), database.transaction() as execute:
        execute("INSERT INTO its VALUES (1)")
    with database.transaction() as execute:
        assert list(execute("SELECT * FROM its")) == []
        execute("DROP TABLE its")
        execute("DROP TABLE it")
    database.close()


def test_a_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    path = tmp_path / "%41" / "store.sqlite"
    with Store(f"sqlite:///{path}"):
        pass
    assert path.is_file() and list((tmp_path / "A").iterdir()) == []


@pytest.mark.parametrize("bad", ["sqlite:///", "sqlite:///store.sqlite?mode=ro"])
def test_a_url_without_a_path_or_with_parameters_is_refused(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        open_database(bad)
    assert refused.value.hint == URL_HINT and list(tmp_path.iterdir()) == []


def test_no_secret_of_a_url_is_told() -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/runs?sslpassword=s3cret&passfile=/s3cret"
    with pytest.raises(DynoError) as failed:
        open_database(url)
    assert "s3cret" not in failed.value.message
    assert all(part in failed.value.message for part in ("user=me", "127.0.0.1", "port=1", "dbname=runs"))


@pytest.mark.parametrize("bad", ["postgresql://me:secret@[::1/x", "postgresql://me:secret@h/x?nonsense=1"])
def test_a_url_that_cannot_be_read_keeps_its_password(bad: str) -> None:
    with pytest.raises(UserError, match="cannot be read") as refused:
        open_database(bad)
    assert "secret" not in f"{refused.value.message} {refused.value.hint}"


pytestmark = pytest.mark.usefixtures("homes")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a run, whose statements do not wait for other processes."""
    monkeypatch.setattr(database, "LOCKED_S", 0.0)
    found = f"sqlite:///{tmp_path / 'store.sqlite'}"
    with Store(found) as store:
        store.add_run(make_run(make_study()))
    return found


@pytest.fixture
def other(url: str, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Another process's connection, which keeps everybody else from writing."""
    with closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def stored(url: str) -> list[int]:
    with Store(url) as store:
        return [record.trial for record in store.records("first")]


def spool_of(url: str) -> Spool:
    with closing(database.open_database(url)) as opened:
        return Spool(opened.key)


def test_a_busy_store_gets_its_records_when_it_is_opened_again(url: str, other: sqlite3.Connection) -> None:
    with Store(url) as store:
        for trial in range(3):
            store.add_record(make_record(trial, log=f"a zero \x00, a 鯨 and {trial}"))
    assert stored(url) == []
    other.execute("COMMIT")
    with Store(url) as store:
        assert [record.server_log[-1] for record in store.records("first")] == ["0", "1", "2"]
    assert spool_of(url).empty


def test_the_end_of_a_run_waits_for_a_busy_store(
    url: str, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            other.execute("COMMIT")

    monkeypatch.setattr("time.sleep", wait)
    with Store(url) as store:
        for trial in range(3):
            store.add_record(make_record(trial))
        store.finish_run("first")
        assert [record.trial for record in store.records("first")] == [0, 1, 2]
        [summary] = store.runs()
        assert summary.finished and summary.outcomes == {"measured": 3}
    assert waits[1] > waits[0]


def test_a_store_that_stays_busy_is_said_to_and_loses_nothing(
    url: str, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "PATIENCE_S", 0.0)
    with Store(url) as store:
        store.add_record(make_record(0))
        with pytest.raises(DynoError, match="locked; its last records wait in") as refused:
            store.finish_run("first")
    assert str(spool_of(url).path) in refused.value.message
    assert refused.value.hint == "then: dyno run --resume first"
    other.execute("COMMIT")
    assert stored(url) == [0]


DIES = """
import os, signal, sys
from dbdyno.records import database
from dbdyno.records.store import Store
from tests.records.store_cases import make_record
database.LOCKED_S = 0.0
store = Store(sys.argv[1])
store.add_record(make_record(0))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_waits_outlives_its_process_and_a_torn_line(url: str, other: sqlite3.Connection) -> None:
    subprocess.run([sys.executable, "-c", DIES, url], check=False)
    with spool_of(url).path.open("a") as file:
        file.write('["first", 7, "base')
    with Store(url) as store:
        store.add_record(make_record(1))
    other.execute("COMMIT")
    assert stored(url) == [0, 1]


def test_a_record_that_was_made_again_since_stays(url: str, other: sqlite3.Connection) -> None:
    with Store(url) as store:
        store.add_record(make_record(0, log="waited"))
    other.execute("COMMIT")
    kept = spool_of(url).path.read_bytes()
    with Store(url) as store:
        later = make_record(0, log="made again").but(finished_unix_s=9.0)
        store.add_record(later)
    spool_of(url).path.write_bytes(kept)
    with Store(url) as store:
        assert store.records("first") == [later]


def test_a_record_of_a_run_that_was_removed_goes(url: str, other: sqlite3.Connection) -> None:
    with Store(url) as store:
        store.add_record(make_record(0))
        other.execute("DELETE FROM dyno_runs")
        other.execute("COMMIT")
    assert stored(url) == [] and spool_of(url).empty


def test_a_mistake_is_not_waited_with(url: str) -> None:
    with Store(url) as store, pytest.raises(DynoError, match="FOREIGN KEY"):
        store.add_record(make_record(0).but(run="no such run"))
    assert spool_of(url).empty


def test_a_connection_that_breaks_costs_no_record(postgresql: str) -> None:
    break_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    with Store(postgresql) as store:
        store.add_run(make_run(make_study()))
        for trial in range(3):
            with closing(database.open_database(postgresql)) as opened:
                opened.execute(break_all)
            store.add_record(make_record(trial))
        store.finish_run("first")
        [summary] = store.runs()
        assert summary.finished and summary.outcomes == {"measured": 3}


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that were synced, in their order."""
    found: list[Path] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        found.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return found


def test_a_record_that_waits_is_on_disk_and_so_is_its_removal(url: str, synced: list[Path]) -> None:
    spool = Spool(url)
    spool.keep(("first", 1, "baseline", 0, "measured", "{}"))
    assert synced == [spool.path, spool.path.parent]
    with spool.taken() as waiting:
        assert len(waiting) == 1
    assert synced[2:] == [spool.path] and spool.path.stat().st_size == 0
