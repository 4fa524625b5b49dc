"""The load process: a load that waits between its slices, told through the pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.driver.tally import Acknowledged
from dbdyno.errors import DriverFailed, LoadDied
from dbdyno.host.launch import Launch
from tests.needs import needs_any_gcc

SLICES = 3


@pytest.fixture
def load() -> Iterator[LoadProcess]:
    with LoadProcess({}, Launch()) as process:
        yield process


@pytest.fixture
def job(tmp_path: Path, load: LoadProcess) -> Job:
    url = f"sqlite://{tmp_path}/rows?synchronous=off&journal_mode=wal"
    one = Job(url=url, workload="tpcb", duration_s=0.6, slices=SLICES, settle_s=0.02)
    load.prepare(one)
    return one


def test_the_child_imports_nothing_of_dyno_but_the_driver() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "dbdyno.driver.child"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert {name for name in imported if name.startswith("dbdyno")} == {
        "dbdyno",
        "dbdyno.driver",
        "dbdyno.driver._driver",
    }
    roots = {name.split(".")[0] for name in imported}
    assert not roots & {"click", "numpy", "polars", "psutil", "psycopg", "pydantic", "rich", "scipy"}


def test_a_load_in_slices_goes_on_when_it_is_told_to(load: LoadProcess, job: Job) -> None:
    assert load.begin(job) is None
    waits = 1
    while (tally := load.go_on()) is None:
        waits += 1
    assert (waits, len(tally.slices), len(tally.windows)) == (SLICES, SLICES, SLICES)
    assert load.told is not None
    assert tally.slices[0].operations <= load.told.acknowledged <= tally.acknowledged
    assert load.told.by_transaction == {"tpcb": load.told.acknowledged}
    assert sum(one.operations for one in tally.slices) == tally.operations
    assert all(check.holds for check in load.check(job, Acknowledged.by([tally])))


def test_a_load_that_is_ended_where_it_waits_keeps_the_slices_it_had(load: LoadProcess, job: Job) -> None:
    assert load.begin(job) is None and load.go_on() is None
    tally = load.end()
    assert tally.interrupted and len(tally.slices) == 1
    assert tally.slices[0].operations == tally.operations > 0
    assert tally.duration_s == pytest.approx(0.6 / SLICES, rel=0.5)
    assert all(check.holds for check in load.check(job, Acknowledged.by([tally])))


def test_a_load_in_one_piece_has_one_window(load: LoadProcess, job: Job) -> None:
    tally = load.run(job.but(slices=None, warmup_s=0.1))
    assert load.told is None
    start_s = tally.started_unix_s + 0.1
    assert (tally.slices, tally.windows) == ((), ((start_s, start_s + tally.duration_s),))


def test_a_load_process_that_is_closed_between_slices_ends(load: LoadProcess, job: Job) -> None:
    assert load.begin(job) is None
    load.close()
    assert not Path(f"/proc/{load.process_id}").exists()


def test_a_load_process_that_the_kernel_kills_says_where_to_look(load: LoadProcess, job: Job) -> None:
    """As where memory runs out."""
    load.begin(job)
    os.kill(load.process_id, signal.SIGKILL)
    with pytest.raises(LoadDied, match=r"died during `go on` \(SIGKILL") as died:
        load.go_on()
    assert "dmesg" in died.value.hint


def test_slices_that_cannot_be_are_refused(load: LoadProcess, job: Job) -> None:
    with pytest.raises(DriverFailed, match="slices do not go with"):
        load.begin(job.but(operations=10))


@needs_any_gcc
@pytest.mark.parametrize("runs", [True, False])
def test_exit_handlers_of_an_engine_run_where_they_must_and_nowhere_else(tmp_path: Path, runs: bool) -> None:
    code = '__attribute__((destructor)) void end(void) { creat(getenv("ENDED"), 0600); }\n'
    (tmp_path / "engine.c").write_text(f"#include <fcntl.h>\n#include <stdlib.h>\n{code}")
    library, ended = tmp_path / "engine.so", tmp_path / "ended"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "engine.c"], check=True)
    environment = {"LD_PRELOAD": str(library), "ENDED": str(ended)}
    with LoadProcess({}, Launch(environment=environment, exit_handlers=runs, patience=20.0)):
        pass
    assert ended.exists() is runs
