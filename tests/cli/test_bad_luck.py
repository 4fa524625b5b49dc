"""Bad luck with real engines: a binary that is none, a server that dies, a full disk, Ctrl-C, kill -9."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.errors import DynoError
from dbdyno.host import paths
from dbdyno.host.journal import open_journal
from dbdyno.host.launch import Launch
from dbdyno.layers.registry import LAYERS
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record
from dbdyno.records.store import Store
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench
from tests.cli.calls import complaint, dyno
from tests.conftest import DYNO
from tests.fakes import Stages, carried_out, make_run
from tests.needs import IS_ROOT
from tests.warm import Process

pytestmark = pytest.mark.engine

STUDY = """
engine = "mariadb@11.8"
blocks = 2
[workload]
name     = "tpcb"
clients  = 2
warmup   = "0s"
duration = "1s"
[factors]
"config.innodb_flush_log_at_trx_commit" = [1, 2]
"""


@pytest.fixture
def study(homes_with_data: Path) -> Iterator[Path]:
    path = homes_with_data / "study.toml"
    path.write_text(STUDY)
    yield path
    assert leftovers() == []


def leftovers() -> list[str]:
    """Processes and files of this test's Dyno that should not be there any more."""
    folders = (paths.cache() / "trials", paths.runtime(), paths.host() / "journal")
    files = [str(path) for folder in folders if folder.exists() for path in folder.iterdir()]
    mine = str(paths.runtime())
    running = [
        " ".join(process.info["cmdline"] or [])
        for process in psutil.process_iter(["cmdline"])
        if any(mine in part for part in process.info["cmdline"] or [])
    ]
    return files + running


def stored() -> list[Record]:
    with Store(store_url()) as store:
        return store.records(store.run("last").run)


def begin(study: Path, *arguments: str) -> Process:
    return Process("run", str(study), *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_first_trial(child: Process) -> None:
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("[1/"):
            return
    raise AssertionError("the run ended before its first trial")


def test_a_binary_that_is_not_there(study: Path) -> None:
    study.write_text(STUDY.replace("mariadb@11.8", "mariadb:/nowhere/mariadbd"))
    assert "/nowhere/mariadbd" in complaint("run", str(study))


def test_a_binary_that_may_not_be_run(study: Path) -> None:
    binary = study.parent / "mariadbd"
    binary.touch(mode=0o644)
    study.write_text(STUDY.replace("mariadb@11.8", f"mariadb:{binary}"))
    assert str(binary) in complaint("run", str(study))


def test_a_binary_that_dies_at_once(study: Path) -> None:
    binary = study.parent / "mariadbd"
    binary.write_text("#!/bin/sh\necho 'out of luck' >&2\nexit 3\n")
    binary.chmod(0o755)
    study.write_text(STUDY.replace("mariadb@11.8", f"mariadb:{binary}"))
    result = dyno("run", str(study))
    assert result.returncode == 2
    assert str(binary) in result.stderr


def test_a_setting_that_the_server_refuses_fails_its_variant_alone(study: Path) -> None:
    study.write_text(
        STUDY.replace("innodb_flush_log_at_trx_commit", "innodb_data_file_path")
        .replace("[1, 2]", '["ibdata1:12M:autoextend", "nonsense"]')
        .replace("blocks = 2", "blocks = 1")
    )
    result = dyno("run", str(study), "--json")
    assert result.returncode == 0, result.stderr
    outcomes = {record.variant: record.outcome for record in stored()}
    assert outcomes.pop("baseline") is Outcome.MEASURED
    assert set(outcomes.values()) == {Outcome.FAILED}
    failed = next(record for record in stored() if record.outcome is Outcome.FAILED)
    assert failed.server_log != ""


def test_a_server_that_is_killed_under_load_is_broken(study: Path) -> None:
    """The server dies one second into the load of the first trial; the second trial is as if nothing was."""

    def kill_soon(trial: Trial, stage: str) -> None:
        if (trial.index, stage) == (0, "drive"):
            [server] = [p for p in psutil.Process().children() if "mariadbd" in " ".join(p.cmdline())]
            threading.Timer(1.0, server.kill).start()

    read = study_at(study, blocks=1, seed=None)
    read = read.model_copy(update={"workload": read.workload.model_copy(update={"duration_s": 3.0})})
    engine = registry.engine("mariadb")
    with Store(store_url()) as store, open_journal() as journal:
        run = make_run(read)
        store.add_run(run)
        bench = Bench(
            study=read,
            run=run,
            engine=engine,
            installation=engine.obtaining.locate(read.engine),
            layers=LAYERS,
            journal=journal,
            open_load=LoadProcess,
            cores=2,
        )
        first, second = carried_out(bench, store, Stages(kill_soon))
    assert first.outcome is Outcome.BROKEN, first.cause
    assert second.outcome is Outcome.MEASURED, second.cause


@pytest.mark.skipif(not IS_ROOT, reason="only root can mount a small file system")
def test_a_full_disk_is_found_before_the_load(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = study.parent / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", small], check=True)
    try:
        engines = paths.cache() / "engines"
        monkeypatch.setenv("XDG_CACHE_HOME", str(small))
        (paths.cache() / "engines").symlink_to(engines)
        result = dyno("run", str(study))
        assert result.returncode == 3, result.stderr
        assert "MiB free" in result.stderr
        assert "XDG_CACHE_HOME" in result.stderr
    finally:
        subprocess.run(["umount", small], check=True)


def test_ctrl_c_keeps_what_is_finished_and_the_run_goes_on(study: Path) -> None:
    child = begin(study)
    wait_for_first_trial(child)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert re.search(r"(1 of 4 trials is|[2-4] of 4 trials are) kept", errors)
    assert "go on with: dyno run --resume" in errors
    assert leftovers() == []
    kept = stored()
    assert 1 <= len(kept) < 4
    result = dyno("run", str(study), "--resume")
    assert result.returncode == 0, result.stderr
    assert [record.outcome for record in stored()] == [Outcome.MEASURED] * 4
    assert stored()[: len(kept)] == kept
    assert "no unfinished run" in complaint("run", str(study), "--resume")


def test_a_second_ctrl_c_still_puts_the_host_back(study: Path) -> None:
    child = begin(study)
    wait_for_first_trial(child)
    while child.poll() is None:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.05)
    assert child.stderr is not None
    errors = child.stderr.read()
    assert re.search(r"(1 of 4 trials is|[2-4] of 4 trials are) kept", errors)
    assert "Traceback" not in errors
    assert leftovers() == []


def test_kill_9_leaves_nothing_after_the_next_start(study: Path) -> None:
    child = begin(study)
    wait_for_first_trial(child)
    child.kill()
    child.communicate(timeout=60)
    kept = stored()
    dyno("cleanup")
    assert leftovers() == []
    result = dyno("run", "--resume", str(study))
    assert result.returncode == 0, result.stderr
    assert stored()[: len(kept)] == kept
    assert len(stored()) == 4


def test_two_dynos_do_not_measure_each_other(study: Path) -> None:
    child = begin(study)
    wait_for_first_trial(child)
    assert "another dyno measures on this machine" in complaint("run", str(study), code=1)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 130


def test_a_wrong_password_is_said_in_one_line(study: Path) -> None:
    engine = registry.engine("mariadb")
    installation = engine.obtaining.locate(study_at(study).engine)
    runtime = paths.runtime() / "s"
    runtime.mkdir()
    engine.life.initialise(installation, study.parent / "server", {})
    server = engine.life.start(installation, study.parent / "server", runtime, {}, Launch())
    try:
        url = f"mysql://stranger:wrong@localhost/test?socket={server.url.partition('socket=')[2]}"
        message = complaint("load", "run", "tpcb", "--url", url, "--time", "1", code=1)
        assert "stranger" in message
        assert "wrong" not in message
    finally:
        server.kill()
        for path in runtime.iterdir():
            path.unlink()
        runtime.rmdir()


def test_a_load_process_that_dies_says_how(homes: Path) -> None:
    with LoadProcess({}, Launch()) as load:
        os.kill(load.process_id, signal.SIGSEGV)
        with pytest.raises(DynoError, match=r"the load process died during `query` \(SIGSEGV"):
            load.query("mysql://localhost/x", "SELECT 1")


def test_a_load_process_ends_with_its_owner(homes: Path) -> None:
    """kill -9 of the parent: the kernel ends the child."""
    code = (
        "import os, signal\n"
        "from dbdyno.driver.load_process import LoadProcess\n"
        "from dbdyno.host.launch import Launch\n"
        "print(LoadProcess({}, Launch()).process_id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run([DYNO[0], "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == -9
    psutil.wait_procs(
        [psutil.Process(int(result.stdout))] if psutil.pid_exists(int(result.stdout)) else [], 5
    )
    assert not psutil.pid_exists(int(result.stdout))
