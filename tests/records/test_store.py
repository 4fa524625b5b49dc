"""The store, on SQLite and on a real PostgreSQL: what was reported written is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.fakes import make_run, make_study
from tests.host.tracer import FDATASYNC, FSYNC, MACHINE, stop_for_tracer, trace
from tests.records.store_cases import make_record


def test_what_was_written_is_read_back(url: str) -> None:
    run, record = make_run(make_study()), make_record(0, log="a zero \x00 and a 鯨")
    with Store(url) as store:
        store.add_run(run)
        store.add_record(record)
    with Store(url) as store:
        assert store.run("first") == run
        assert store.records("first") == [record]


def test_several_can_open_a_store_that_is_not_made_yet(postgresql: str) -> None:
    """As the workers of a fleet do."""
    with Store(postgresql) as store, store._transaction() as execute:
        for table in ("records", "names", "notes", "runs", "chain", "schema"):
            execute(f"DROP TABLE dyno_{table}")

    def opened(_number: int) -> int:
        with Store(postgresql) as store:
            return len(store.runs())

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(opened, range(8))) == [0] * 8


def test_an_account_that_may_only_insert_is_refused_before_the_first_trial(postgresql: str) -> None:
    with Store(postgresql) as store, store._transaction() as execute:
        execute("DROP ROLE IF EXISTS inserter")
        execute("CREATE ROLE inserter LOGIN")
    inserter = postgresql.replace("dyno@", "inserter@")
    every = "ON ALL TABLES IN SCHEMA public"
    try:
        for right, told in (("SELECT", "INSERT on dyno_runs"), ("INSERT", "UPDATE on dyno_runs")):
            with Store(postgresql) as store, store._transaction() as execute:
                execute(f"GRANT {right} {every} TO inserter")
            with Store(inserter) as store, pytest.raises(UserError) as refused:
                store.require_writable()
            assert told in refused.value.message and "GRANT SELECT, INSERT" in refused.value.hint
        with Store(postgresql) as store, store._transaction() as execute:
            execute("GRANT UPDATE, DELETE ON dyno_runs, dyno_records, dyno_names, dyno_notes TO inserter")
        with Store(inserter) as store:
            store.require_writable()
            store.add_run(make_run(make_study()))
            store.add_record(make_record(0))
        with Store(postgresql) as store, store._transaction() as execute:
            execute(f"REVOKE ALL {every} FROM inserter")
        with pytest.raises(DynoError) as unseen:
            Store(inserter)
        assert "permission denied" in unseen.value.message and "GRANT SELECT, INSERT" in unseen.value.hint
    finally:
        with Store(postgresql) as store, store._transaction() as execute:
            execute("DROP OWNED BY inserter")
            execute("DROP ROLE inserter")


def test_a_trial_has_one_record(url: str) -> None:
    with Store(url) as store:
        store.add_run(make_run(make_study()))
        store.add_record(make_record(1))
        store.add_record(make_record(0, Outcome.FAILED))
        store.add_record(make_record(0))
        assert [(record.trial, record.outcome) for record in store.records("first")] == [
            (0, Outcome.MEASURED),
            (1, Outcome.MEASURED),
        ]


def test_a_run_is_found_by_the_start_of_its_name(url: str) -> None:
    study = make_study()
    with Store(url) as store:
        for number, name in enumerate(["2611-a", "2611-ab", "2612-b"]):
            store.add_run(make_run(study, name).but(created_unix_s=float(number)))
        assert store.run("2612").run == "2612-b"
        for name in ("2611-a", "2611-ab"):
            store.add_record(make_record(0).but(run=name))
        assert store.run("last").run == "2611-ab", "the latest that has a result"
        assert store.begun_since(store.run("last")) == ["2612-b"]
        assert store.run("2611-ab").run == "2611-ab"
        with pytest.raises(UserError, match="more than one run starts with '2611'"):
            store.run("2611")
        with pytest.raises(UserError, match="no run '%'"):
            store.run("%")


def test_a_whole_name_wins_over_longer_ones(url: str) -> None:
    with Store(url) as store:
        store.add_run(make_run(make_study(), "2611-a").but(created_unix_s=1.0))
        store.add_run(make_run(make_study(), "2611-ab").but(created_unix_s=2.0))
        assert store.run("2611-a").run == "2611-a"


@pytest.fixture
def three(url: str) -> Iterator[Store]:
    """A store with the runs `one`, `two` and `three`."""
    with Store(url) as store:
        for number, name in enumerate(["one", "two", "three"]):
            store.add_run(make_run(make_study(), name).but(created_unix_s=float(number)))
        yield store


def test_a_run_is_found_by_the_name_that_its_user_gave(three: Store) -> None:
    three.name_run("one", "before")
    three.note_run("one", "the old disk")
    assert three.run("before").run == "one"
    three.name_run("one", "t")
    assert three.run("t").run == "one", "a name wins over the beginning of other runs'"
    with pytest.raises(UserError, match="no run 'before'"):
        three.run("before")
    summary = three.runs()[-1]
    assert (summary.name, summary.note) == ("t", "the old disk")


def test_a_name_stands_for_one_thing(three: Store) -> None:
    three.name_run("one", "mine")
    three.set_baseline("main", "one")
    for bad in ("mine", "two", "main"):
        with pytest.raises(UserError, match="already"):
            three.name_run("three", bad)
    for bad in ("mine", "two"):
        with pytest.raises(UserError, match="already"):
            three.set_baseline(bad, "three")
    for bad in ("last", "", "a b", "-x", "x" * 65):
        with pytest.raises(UserError, match="cannot be a name"):
            three.name_run("three", bad)
    three.name_run("one", "mine")


def test_a_baseline_moves_and_keeps_its_run(three: Store) -> None:
    three.set_baseline("main", "one")
    three.set_baseline("main", "two")
    assert three.baselines() == {"main": "two"} and three.run("main").run == "two"
    with pytest.raises(UserError, match="run two is the baseline main"):
        three.remove_run("two")
    three.remove_baseline("main")
    with pytest.raises(UserError, match="no baseline 'main'"):
        three.remove_baseline("main")
    assert three.run("two").run == "two"


def test_a_run_that_was_deleted_leaves_nothing(three: Store) -> None:
    first = make_record(0).but(run="one")
    three.add_record(first)
    three.name_run("one", "mine")
    three.note_run("one", "a note")
    three.remove_run("one")
    assert [summary.run.run for summary in three.runs()] == ["three", "two"]
    assert three.records("one") == []
    three.name_run("two", "mine")


def test_a_run_is_unfinished_until_its_trials_have_ended(url: str) -> None:
    with Store(url) as store:
        assert store.unfinished_runs() == []
        store.add_run(make_run(make_study()))
        (found,) = store.unfinished_runs()
        assert found.run == "first"
        store.finish_run("first")
        assert store.unfinished_runs() == []
        assert [(summary.run.run, summary.finished) for summary in store.runs()] == [("first", True)]
        store.reopen_run(found.but(blocks=9))
        assert [run.blocks for run in store.unfinished_runs()] == [9]


def test_a_record_survives_the_death_of_its_writer(tmp_path: Path) -> None:
    """SIGKILL right after `add_record` returned."""
    code = (
        "import os, signal, sys\n"
        "from dbdyno.records.store import Store\n"
        "from tests.fakes import make_run, make_study\n"
        "from tests.records.store_cases import make_record\n"
        "store = Store(sys.argv[1])\n"
        "store.add_run(make_run(make_study()))\n"
        "store.add_record(make_record(7))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode == -9
    with Store(url) as store:
        assert [record.trial for record in store.records("first")] == [7]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ("nonsense", UserError, "not a store's URL"),
        ("mysql://root@localhost/x", UserError, "no store speaks mysql"),
        ("postgresql://nobody@/x?host=/nowhere", DynoError, "failed"),
        ("sqlite:////dev/null/dyno.sqlite", DynoError, "failed"),
    ],
)
def test_a_store_that_cannot_be_opened_is_named(bad: str, error: type[DynoError], message: str) -> None:
    with pytest.raises(error, match=message):
        Store(bad)


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"not a database at all" * 100)
    with pytest.raises(DynoError, match="file is not a database"):
        Store(f"sqlite:///{tmp_path / 'x'}")


def test_a_store_of_another_schema_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    with Store(url) as store, store._transaction() as execute:
        execute("UPDATE dyno_schema SET version = 99")
    with pytest.raises(DynoError, match="has schema 99, this Dyno reads 1"):
        Store(url)


URL = "mysql://root:s3cret@localhost/test"


def test_no_password_goes_into_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(f"sqlite:///{path}") as store:
        given = {"study_text": f'title = "{URL}"', "installation": {"origin": URL}}
        run = make_run(make_study()).but(**given)
        store.add_run(run)
        store.note_run(run.run, URL)
        record = make_record(0, log=f"{URL}\n{URL}")
        store.add_record(record.but(variant=URL, cause=URL, levels={"x": URL}))
        assert store.records(run.run)[0].levels == {"x": "mysql://root:***@localhost/test"}
        for file in tmp_path.iterdir():
            assert b"s3cret" not in file.read_bytes()


def test_a_password_that_an_earlier_dyno_kept_does_not_come_out(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        run, record = make_run(make_study()), make_record(0)
        store.add_run(run)
        store.add_record(record)
        store.note_run(run.run, "x")
        with store._transaction() as execute:
            kept = run.but(study_text=URL).model_dump_json()
            execute("UPDATE dyno_runs SET document = ?", kept)
            execute("UPDATE dyno_records SET document = ?", make_record(0, log=URL).model_dump_json())
            execute("UPDATE dyno_notes SET note = ?", URL)
        [summary] = store.runs()
        told = (summary.run.study_text, summary.note, store.records(run.run)[0].server_log)
        assert set(told) == {"mysql://root:***@localhost/test"}


@pytest.mark.parametrize("bad", ["root:s3cret@h/x", "mysql:root:s3cret@h/x", "u:s3cret@x://"])
def test_what_is_no_url_is_not_repeated(bad: str) -> None:
    with pytest.raises(UserError) as caught:
        Store(bad)
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"


def test_a_password_is_never_shown() -> None:
    with pytest.raises(DynoError) as caught:
        Store("postgresql://me:secret@/x?host=/nowhere")
    assert "secret" not in caught.value.message


def test_the_store_is_the_chosen_or_the_default(homes: Path) -> None:
    assert store_url() == f"sqlite:///{homes / 'data' / 'dyno' / 'dyno.sqlite'}"
    assert store_url("sqlite:///y") == "sqlite:///y"


@pytest.mark.skipif(os.uname().machine != MACHINE, reason=f"the tracer is written for {MACHINE}")
def test_a_record_is_on_disk_when_it_is_kept(tmp_path: Path) -> None:
    """By the calls that the process makes: what is not synced, a power cut may take along."""
    child = os.fork()
    if child == 0:
        # Nothing of the test may run twice, whatever happens here.
        with suppress(BaseException):
            store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
            store.add_run(make_run(make_study(1, 2)))
            stop_for_tracer()
            for trial in range(3):
                store.add_record(make_record(trial))
        os._exit(0)
    numbers = trace(child, -1, "none", lambda: None).numbers
    assert sum(number in (FSYNC, FDATASYNC) for number in numbers) >= 3
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        assert len(store.records("first")) == 3


def test_the_records_of_one_turn_are_those_of_its_lots_and_the_first_has_what_is_in_no_block(
    url: str,
) -> None:
    with Store(url) as store:
        store.add_run(make_run(make_study()))
        for trial in range(12):
            store.add_record(make_record(trial).but(block=trial - 1))
        turns = [[record.block for record in store.records_in_turn("first", 2, 3, turn)] for turn in range(3)]
    assert turns == [[-1, 0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10]]
