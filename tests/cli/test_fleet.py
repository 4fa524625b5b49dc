"""`dyno run --fleet`, `dyno fleet worker` and `dyno fleet hosts`: what they refuse, and a run on hosts that
die and come back."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dbdyno.cli import worker as verb
from dbdyno.cli.fleet import Controller
from dbdyno.errors import DynoError
from dbdyno.fleet import kept_builds, parts
from dbdyno.fleet.hosts import register, remove, take
from dbdyno.fleet.kept_builds import KeptBuild, Maker, made_by
from dbdyno.fleet.session import Session
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.obtain.source.packed import content_of
from dbdyno.plan.restarts import blocks_of
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.record import Outcome
from dbdyno.records.run import FleetHost
from dbdyno.records.store import Store
from tests.analyse.factory import a_run, a_study, records_of
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.fleet.cases import member, record_of, run_on
from tests.fleet.judge import OVERLAPS
from tests.fleet.machines import folders_in, wait_for
from tests.records.postgresql import PostgreSQL
from tests.sqlite_fork import make_fork
from tests.warm import Process

STUDY = """
title  = "Does the page cache of SQLite matter?"
engine = "sqlite"
blocks = 3
slice  = "0.1s"
[workload]
name     = "tpcb"
clients  = 1
warmup   = "0s"
duration = "0.3s"
[factors]
"config.cache_size" = [-2000, -20000]
"""
BUILDS = """
title  = "Which build?"
engine = "sqlite"
blocks = 2
slice  = "0.1s"
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[settings]
"source.origin"      = "fork"
"source.recipe"      = "recipe.toml"
"config.synchronous" = "OFF"
[goal]
counted = false
[factors]
"build.optimisation" = ["-O2", "-O0"]
"""
RESTARTS = STUDY + "[restarts]\nkills = 1\n"


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


@contextmanager
def worker(name: str, url: str, folder: Path, *options: str) -> Iterator[Process]:
    """A worker with folders of its own. It is ended, and must have put its host back."""
    variables = {**os.environ, **folders_in(folder / name), "DYNO_STORE": url}
    command = ("worker", "--name", name, "--lease", "5s", *options)
    with (folder / f"{name}.log").open("ab") as log:
        process = Process(*command, env=variables, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60.0)


def connected(url: str, *names: str) -> bool:
    told = json.loads(dyno("fleet", "hosts", "--json", "--store", url).stdout)
    return {row["member"]["name"] for row in told if row["state"] != "silent"} >= set(names)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--budget", "1h"), "--budget and --fleet exclude each other"),
        (("--until", "margin"), "--until and --fleet exclude each other"),
        (("--against", "main"), "--against and --fleet exclude each other"),
        (("--live",), "--live and --fleet exclude each other"),
        (("--resume", "last"), "--fleet and --resume exclude each other"),
        (("--allow-path", "here"), "give the option to each worker: dyno fleet worker --allow-path"),
        (("--allow-writes",), "leave it out: workers take --allow-device and --allow-path alone"),
        (("--fleet", "ssh:a,b", "--allow-device", "/dev/sdb"), "/dev/sdb may be another disk on each host"),
        (
            ("--fleet", "ssh:a", "--allow-writes", "--allow-path", "x"),
            "workers take --allow-device and --allow-path alone",
        ),
    ],
)
def test_an_option_that_a_fleet_does_not_take_is_refused(
    study: Path, options: tuple[str, ...], said: str
) -> None:
    assert said in complaint("run", str(study), "--fleet", "a", *options)


def test_a_fleet_needs_a_store_that_all_hosts_reach(study: Path) -> None:
    for words in (("run", str(study), "--fleet", "a"), ("hosts",), ("hosts", "remove", "a"), ("worker",)):
        said = complaint(*words)
        assert "a fleet needs a store that all its hosts reach" in said
        assert "--store postgresql://" in said


def test_a_host_that_is_not_there_is_named(study: Path, store_server: PostgreSQL) -> None:
    said = complaint("run", str(study), "--fleet", "a, b", "--store", store_server.url)
    assert "no host is called 'a'" in said and "dyno fleet worker --name a" in said
    assert "--fleet names no host" in complaint(
        "run", str(study), "--fleet", ",", "--store", store_server.url
    )


def test_a_host_with_other_code_and_an_allowance_that_reaches_no_host_are_refused(
    study: Path, store_server: PostgreSQL
) -> None:
    url = store_server.url
    run = run_on("a", name="begun-elsewhere").but(study_text=STUDY)
    with Store(url) as store, Session(url) as session:
        register(session, member("a"), "1", lambda _: None)
        store.add_run(run)
        for words in ((str(study), "--fleet", "a"), ("--resume", run.run)):
            said = complaint("run", *words, "--store", url)
            assert f"host a: the worker runs Dyno {member('a').dyno_version} with code c0de, and run" in said
            assert "install the Dyno there that began it" in said
        assert parts.parts_of(session, run.run) == []
        said = complaint("run", "--resume", run.run, "--allow-path", "here", "--store", url)
        assert "give the option to each worker" in said
        store.remove_run(run.run)
        remove(session, "a")


def test_no_hosts_say_how_to_begin(homes: Path, store_server: PostgreSQL) -> None:
    assert "on a host: dyno fleet worker" in dyno("fleet", "hosts", "--store", store_server.url).stderr
    assert "no host is called 'a'" in complaint("fleet", "hosts", "remove", "a", "--store", store_server.url)


def test_hosts_tell_what_they_do_and_how_fine_they_measured(homes: Path, store_server: PostgreSQL) -> None:
    host = a_run(a_study()).host
    fleet = tuple(FleetHost(name=name, host=host) for name in ("a", "b"))
    run = a_run(a_study()).but(study_text=STUDY, run="on-both", blocks=24, fleet=fleet)
    study = study_of(run)
    with (
        Store(store_server.url) as store,
        Session(store_server.url) as session,
        Session(store_server.url) as other,
    ):
        store.add_run(run)
        for pair in zip(records_of(study), records_of(study, trial_sd=0.1), strict=True):
            name = "a" if run.host_of(pair[0].block) == fleet[0] else "b"
            store.add_record(pair[name == "b"].but(run=run.run, fleet_host=name))
        store.finish_run(run.run)
        register(session, member("a", "big"), "1", lambda _: None)
        fence = take(other, register(other, member("b"), "2", lambda _: None), run.run, 60.0)
        maker = Maker(run=run.run, host="b", fence=fence, words="building it")
        with made_by(other, "sqlite-1", maker):
            assert "builds for" in dyno("fleet", "hosts", "--store", store_server.url).stdout
        said = dyno("fleet", "hosts", "--json", "--store", store_server.url).stdout
        require_valid("hosts", said)
        rows = {row["member"]["name"]: row for row in json.loads(said)}
        assert (rows["a"]["state"], rows["b"]["state"]) == ("idle", "measures")
        assert 0.0 < rows["a"]["floor"] < rows["b"]["floor"] and rows["a"]["floor_run"] == "on-both"
        table = dyno("fleet", "hosts", "--store", store_server.url).stdout
        assert "big" in table and "on-both" in table
        for name in ("a", "b"):
            assert dyno("fleet", "hosts", "remove", name, "--store", store_server.url).returncode == 0


def test_a_fault_of_dyno_fails_the_run_on_its_host_and_is_not_tried_again(
    homes: Path, store_server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError

    run = run_on("a", name="with-a-fault")
    with Store(store_server.url) as store, Session(store_server.url) as session:
        place = register(session, member("a"), "1", lambda _: None)
        store.add_run(run)
        parts.give(session, run)
        monkeypatch.setattr(verb, "begun_here", fault)
        with pytest.raises(ZeroDivisionError):
            verb.Worker(session, store_server.url, place, NOTHING_ALLOWED, 60.0)._go_on()
        [part] = parts.parts_of(session, run.run)
        assert part.state is parts.PartState.FAILED and "ZeroDivisionError" in part.told
        assert parts.next_run(session, "a") is None
        store.remove_run(run.run)
        remove(session, "a")


@pytest.mark.parametrize(("trial", "code"), [(0, 3), (1, 1)], ids=["the baseline", "another variant"])
def test_a_run_without_a_baseline_on_a_host_ends_as_one_on_this_host(
    homes: Path, store_server: PostgreSQL, trial: int, code: int
) -> None:
    run = run_on("a", name="without-baseline").but(study_text=STUDY)
    with Store(store_server.url) as store, Session(store_server.url) as session:
        place = register(session, member("a"), "1", lambda _: None)
        store.add_run(run)
        parts.give(session, run)
        fence = take(session, place, run.run, 60.0)
        failed = record_of(trial, "a", fence, run.run).but(outcome=Outcome.FAILED, cause="it did not start")
        store.add_record(failed.but(variant="baseline" if trial == 0 else "other"))
        parts.end(session, place, run.run, parts.PartState.FAILED, "it did not start")
        with pytest.raises(DynoError, match="host a: it did not start") as told:
            Controller(store, session, store_server.url, None, NOTHING_ALLOWED, quiet=True).follow(run)
        assert told.value.exit_code == code
        store.remove_run(run.run)
        remove(session, "a")


def test_the_unit_of_a_worker_holds_no_password(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO_STORE", "postgresql://dyno:secret$1@db.example/dyno")
    unit = homes / "own.service"
    said = dyno("fleet", "worker", "install", "--name", "a", "--tag", "big", "--output", str(unit))
    environment = unit.with_suffix(".env")
    assert said.returncode == 0 and "secret" not in said.stdout + said.stderr + unit.read_text()
    assert f"systemctl --user enable --now {unit}" in said.stdout
    assert '"worker" "start" "--name" "a" "--tag" "big"' in unit.read_text()
    assert f"EnvironmentFile={environment}" in unit.read_text()
    assert environment.read_text() == 'DYNO_STORE="postgresql://dyno:secret$1@db.example/dyno"\n'
    assert environment.stat().st_mode & 0o777 == 0o600


def test_a_name_that_no_host_can_have_is_refused(homes: Path, store_server: PostgreSQL) -> None:
    assert "cannot be the name of a host" in complaint(
        "fleet", "worker", "--name", "a b", "--store", store_server.url
    )


def test_builds_in_the_store_are_told_and_removed_unless_a_run_needs_them(
    homes: Path, store_server: PostgreSQL
) -> None:
    with Store(store_server.url) as store, Session(store_server.url) as session:
        assert (
            "the store has no builds" in dyno("cache", "builds", "stored", "--store", store_server.url).stderr
        )
        for host in ("a", "b"):
            build = KeptBuild(
                name=f"sqlite-{host}",
                host=host,
                words="gcc -O2",
                content="0" * 64,
                sha256="1" * 64,
                packed_bytes=3 << 20,
            )
            kept_builds.keep(session, build, [b"packed"])
        store.add_run(run_on("a", name="needs-it"))
        kept_builds.content_for(session, "needs-it", build)
        register(session, member("a"), "1", lambda _: None)
        said = dyno("cache", "builds", "stored", "--json", "--store", store_server.url).stdout
        require_valid("builds-stored", said)
        assert [(row["host"], row["runs"]) for row in json.loads(said)] == [("a", []), ("b", ["needs-it"])]
        table = dyno("cache", "builds", "stored", "--store", store_server.url).stdout
        assert "made on" in table and "in all: 6.000 MiB" in table
        told = dyno("fleet", "hosts", "--store", store_server.url).stdout
        assert "2 builds in the store, 6.000 MiB: 1 made on a, 1 made on b" in " ".join(told.split())
        unstore = ("builds", "unstore", "--store", store_server.url)
        assert "sqlite-b is needed by run needs-it, which is not over" in complaint(*unstore, "sqlite-b")
        assert "the store has no build sqlite-c" in complaint(*unstore, "sqlite-c")
        assert "no build was named" in complaint(*unstore)
        assert "1 build removed from the store, 3.000 MiB" in dyno(*unstore, "--all").stderr
        store.remove_run("needs-it")
        assert dyno(*unstore, "sqlite-b").returncode == 0
        assert kept_builds.all_kept(session) == []
        assert session.execute("SELECT count(*) FROM dyno_build_pieces") == [(0,)]
        remove(session, "a")


@pytest.mark.engine
def test_each_build_of_a_study_is_made_on_one_host_of_three(
    study: Path, homes: Path, store_server: PostgreSQL
) -> None:
    url, names = store_server.url, ("a", "b", "c")
    make_fork(homes)
    study.write_text(BUILDS)
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(worker(name, url, homes))
        wait_for("all workers are there", lambda: connected(url, *names), 120.0)
        over = dyno("run", str(study), "--fleet", "a,b,c", "--store", url, "--name", "of-builds")
    assert over.returncode == 0, over.stderr
    told = {name: (homes / f"{name}.log").read_text() for name in names}
    assert sum(log.count(": compile, 1 of 1") for log in told.values()) == 2
    assert sum(log.count(": taken from the store") for log in told.values()) == 4
    assert sum(log.count("the correctness gate, with") for log in told.values()) == 2
    with Store(url) as store, Session(url) as session:
        kept = {one.build.content: one.build.host for one in kept_builds.all_kept(session)}
        assert len(kept) == 2
        found = store.records(store.run("of-builds").run)
        records = [record for record in found if record.variant == "baseline"]
        accepted = {one.accepted.source for record in records for one in record.evidence if one.accepted}
    assert {record.fleet_host for record in records} == set(names)
    [of_build] = [source for source in accepted if source.startswith("build ")]
    assert of_build.rpartition(" ")[2] in kept.values() and ", made on host " in of_build
    shelves = [homes / name / "XDG_CACHE_HOME" / "dyno" / "builds" for name in names]
    folders = [sorted(path for path in shelf.iterdir() if path.is_dir()) for shelf in shelves]
    assert [{content_of(folder) for folder in each} for each in folders] == [set(kept)] * 3


@pytest.mark.engine
def test_a_study_runs_on_hosts_one_of_which_dies_and_its_controller_too(
    study: Path, homes: Path, store_server: PostgreSQL
) -> None:
    url = store_server.url
    with worker("a", url, homes, "--tag", "all"), worker("b", url, homes, "--tag", "all") as dies:
        wait_for("both workers are there", lambda: connected(url, "a", "b"), 120.0)
        assert "a study with [restarts] is carried out on one host" in refused(study, RESTARTS, url)
        study.write_text(STUDY)
        command = ("run", str(study), "--fleet", "tag:all", "--seed", "3", "--store", url)
        controller = Process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with Session(url) as session, Store(url) as store:
            wait_for("the first trial", lambda: store.unfinished_runs() and records(store), 120.0)
            dies.kill()
            controller.kill()
            dies.wait()
            controller.wait()
            [run] = store.unfinished_runs()
            assert run.blocks == 8 and [len(blocks_of(name, run)) for name in ("a", "b")] == [4, 4]
            said = complaint("run", "--resume", run.run, "--store", url)
            assert "host b is silent since" in said and "dyno fleet worker --name b" in said
            with worker("b", url, homes, "--tag", "all"):
                wait_for("its next worker", lambda: connected(url, "b"), 120.0)
                over = dyno("run", "--resume", run.run, "--store", url)
                assert over.returncode == 0, over.stderr
                assert "b: baseline: " in over.stderr
            kept = store.records(run.run)
            assert [record.trial for record in kept] == list(range(16))
            assert {record.fleet_host for record in kept} == {"a", "b"}
            assert session.execute(OVERLAPS) == [] and store.summary(run).finished
            assert all(part.state is parts.PartState.DONE for part in parts.parts_of(session, run.run))
    assert not list(homes.glob("*/DYNO_HOST_FOLDER/journal/*"))


def refused(study: Path, text: str, url: str) -> str:
    study.write_text(text)
    return complaint("run", str(study), "--fleet", "a", "--store", url)


def records(store: Store) -> bool:
    return any(store.trials_of(run.run) for run in store.unfinished_runs())
