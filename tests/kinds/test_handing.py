"""Builds within a fleet: each is made on one host and taken by all others, whatever befalls who makes it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from dbdyno import build_check
from dbdyno.engines import built as engines_built
from dbdyno.engines import registry
from dbdyno.errors import BaselineFailed, UserError
from dbdyno.fleet import kept_builds
from dbdyno.fleet.hosts import take
from dbdyno.fleet.kept_builds import KeptBuild, Maker
from dbdyno.fleet.session import Session
from dbdyno.host import cache
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.kinds import fleet
from dbdyno.kinds.fleet import Depot, builds_handed_on
from dbdyno.obtain.source import making, packed
from dbdyno.prepare_run.begun import Begun
from dbdyno.prepare_run.building import wishes_of
from dbdyno.records.database import Unavailable
from dbdyno.records.store import Store
from dbdyno.study import Factor
from tests.fakes import make_run
from tests.fleet.cases import speaks
from tests.fleet.machines import wait_for
from tests.records.postgresql import PostgreSQL
from tests.sqlite_fork import CODE, LOSES_ROWS, make_fork, wrong_code
from tests.trials import study_of

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes", "quick_gate")]

TABLES = ("builds", "build_runs", "build_failures", "build_makers", "hosts", "leases")
SLOW = """
[[steps]]
name    = "rest"
command = ["sh", "-c", "while test -e {slow}; do sleep 0.1; done"]
"""


@pytest.fixture
def url(store_server: PostgreSQL) -> str:
    with Store(store_server.url), Session(store_server.url) as session:
        for table in TABLES:
            session.execute(f"DELETE FROM dyno_{table}")
    return store_server.url


class Hosts:
    """Hosts of a fleet, one after the other in this process: each has a cache of its own, and tells what it
    does into `told`."""

    def __init__(self, url: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._url, self._patch = folder, url, patch
        self.told: dict[str, list[str]] = {}
        self.levels: tuple[str, ...] = ("-O2", "-O0")
        make_fork(folder)

    def begun(self) -> Begun:
        levels = {"source.origin": "fork", "source.recipe": "recipe.toml", "config.synchronous": "OFF"}
        study = study_of("sqlite", levels)
        factor = Factor(name="build.optimisation", levels=self.levels)
        study = study.but(path=str(self.folder / "study.toml"), factors=(*study.factors, factor))
        return Begun(study, make_run(study), registry.locate(study.engine))

    def enter(self, name: str) -> Path:
        """This process is that host from now on; returns its shelf of builds."""
        self._patch.setattr(engines_built, "_looks", engines_built._Looks())
        self._patch.setenv("XDG_CACHE_HOME", str(self.folder / name))
        return cache.shelf("builds").folder

    def hold(self, name: str, goes_on: Callable[[], bool] = lambda: True, run: str = "first") -> bool:
        """Has a host hold the builds of a run."""
        self.enter(name)
        told = self.told.setdefault(name, [])
        with Session(self._url) as session:
            fence = take(session, speaks(session, name), run, 600.0)
            depot = Depot(session, run, name, fence, told.append, goes_on)
            return builds_handed_on(self.begun(), depot, NOTHING_ALLOWED, tuple)

    def made_slow(self) -> Path:
        """Has each build last as long as this file is there."""
        recipe, slow = self.folder / "recipe.toml", self.folder / "slow"
        slow.touch()
        recipe.write_text(recipe.read_text() + SLOW.format(slow=slow))
        return slow

    def makers(self) -> list[str]:
        """Which hosts make something."""
        with Session(self._url) as session:
            return [maker.host for maker in kept_builds.makers_for(session, "first")]

    def forget_store(self, url: str) -> None:
        with Session(url) as session:
            session.execute("DELETE FROM dyno_builds")

    def made(self, name: str) -> int:
        return sum(": compile, 1 of" in line for line in self.told[name])

    def taken(self, name: str) -> int:
        return sum(": taken from the store" in line for line in self.told[name])


@pytest.fixture
def hosts(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    monkeypatch.setattr(fleet, "WAIT_S", 0.2)
    return Hosts(url, tmp_path / "fleet", monkeypatch)


@pytest.fixture
def ungated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of builds, where a test is of their files alone."""
    monkeypatch.setattr(fleet, "pass_gate", lambda *_: None)


def contents(shelf: Path) -> dict[str, str]:
    """What is kept on a shelf of builds, and that nothing else is there."""
    folders = [path for path in shelf.iterdir() if path.is_dir()]
    assert not [folder for folder in folders if folder.suffix == ".making"]
    return {folder.name: packed.content_of(folder) for folder in folders}


def test_a_build_is_made_and_asked_on_one_host_and_taken_by_the_others(
    hosts: Hosts, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hosts.hold("a")
    assert hosts.made("a") == 2 and len([line for line in hosts.told["a"] if "gate, with" in line]) == 2
    with monkeypatch.context() as patch:
        patch.setattr(making, "_carry_out", None)
        patch.setattr(build_check, "_ask", None)
        assert hosts.hold("b") and hosts.taken("b") == 2
        assert hosts.hold("b") and hosts.taken("b") == 2, "what a host holds it does not take again"
    ours, theirs = contents(hosts.enter("a")), contents(hosts.enter("b"))
    assert ours == theirs and len(ours) == 2
    assert {account.made_on for account in making.all_made()} == {"a"}
    assert all(place.joinpath("build.log").is_file() for place in map(making.folder_of, ours))
    with Session(url) as session:
        assert [(one.build.name, one.build.host) for one in kept_builds.all_kept(session)] == [
            (name, "a") for name in sorted(ours)
        ]


@pytest.mark.usefixtures("ungated")
def test_a_byte_that_changed_in_the_store_is_told_and_the_build_is_made_again(
    hosts: Hosts, store_server: PostgreSQL
) -> None:
    hosts.hold("a")
    with psycopg.connect(store_server.url) as session:
        session.execute(
            "UPDATE dyno_build_pieces SET piece = set_byte(piece, 500, get_byte(piece, 500) # 1)"
            " WHERE name = (SELECT min(name) FROM dyno_builds)"
        )
    assert hosts.hold("b")
    assert any("the store's copy is damaged: its hash is" in line for line in hosts.told["b"])
    assert (hosts.made("b"), hosts.taken("b")) == (1, 1)
    assert contents(hosts.enter("a")) == contents(hosts.enter("b"))
    hosts.hold("c")
    assert (hosts.made("c"), hosts.taken("c")) == (0, 2)


@pytest.mark.usefixtures("ungated")
def test_a_host_that_is_killed_while_it_makes_a_build_leaves_it_to_another(hosts: Hosts) -> None:
    hosts.levels = ("-O2",)
    slow = hosts.made_slow()
    child = multiprocessing.get_context("fork").Process(target=hosts.hold, args=("a",))
    child.start()
    wait_for("a host makes it", lambda: hosts.makers() == ["a"], 60.0)
    told = hosts.told.setdefault("b", [])

    def kill_when_waited_for() -> None:
        wait_for("another waits", lambda: any("host a is at work: building" in line for line in told), 60.0)
        os.kill(child.pid or 0, signal.SIGKILL)
        slow.unlink()

    with started(kill_when_waited_for):
        assert hosts.hold("b")
    child.join()
    assert hosts.made("b") == 1
    # What the killed one has left goes when it takes the build.
    left = hosts.enter("a")
    assert [path.suffix for path in left.iterdir() if path.is_dir()] == [".making"]
    assert hosts.hold("a") and hosts.taken("a") == 1
    assert contents(left) == contents(hosts.enter("b"))


@pytest.mark.usefixtures("ungated")
def test_a_host_that_is_stopped_beyond_its_lease_keeps_no_build_from_others(hosts: Hosts, url: str) -> None:
    hosts.levels = ("-O2",)
    hosts.enter("b")
    study = hosts.begun().study
    [wish] = wishes_of(study)
    name = engines_built.materials_of(registry.engine("sqlite"), wish, study.folder).build.name
    with Session(url) as stopped:
        fence = take(stopped, speaks(stopped, "a"), "first", 0.1)
        maker = Maker(run="first", host="a", fence=fence, words="building it")
        with pytest.raises(Unavailable), kept_builds.made_by(stopped, name, maker) as is_its:
            assert is_its and hosts.hold("b")
            stopped.execute("SELECT 1")
    assert hosts.made("b") == 1
    assert any("by a host whose lease is over" in line for line in hosts.told["b"])


@pytest.mark.usefixtures("ungated")
def test_a_store_that_starts_again_in_the_midst_of_a_keep_has_nothing_half(
    hosts: Hosts, store_server: PostgreSQL, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.levels = ("-O2",)
    monkeypatch.setattr(fleet, "PIECE_BYTES", 256)
    keep = kept_builds.keep

    def interrupted(session: Session, build: KeptBuild, pieces: Iterable[bytes]) -> None:
        def all_pieces() -> Iterator[bytes]:
            for number, piece in enumerate(pieces):
                if number == 2:
                    store_server.restart()
                yield piece

        keep(session, build, all_pieces())

    with monkeypatch.context() as patch:
        patch.setattr(kept_builds, "keep", interrupted)
        with pytest.raises(Unavailable):
            hosts.hold("a")
    with Session(url) as session:
        assert kept_builds.all_kept(session) == []
        assert session.execute("SELECT count(*) FROM dyno_build_pieces") == [(0,)]
    assert hosts.hold("a") and hosts.made("a") == 1
    assert hosts.hold("b") and hosts.taken("b") == 1
    assert contents(hosts.enter("a")) == contents(hosts.enter("b"))


def test_what_speaks_against_a_build_is_found_on_one_host(hosts: Hosts) -> None:
    (hosts.folder / "fork" / "fork.c").write_text("this is no C")
    assert hosts.hold("a") and hosts.hold("b")
    assert hosts.made("a") == 2 and hosts.made("b") == 0
    [told, _] = [line for line in hosts.told["b"] if line.startswith("gcc -O")]
    assert told.startswith("gcc -O2: on host a: ")
    # On one host nothing is handed on, and what was mended is tried again.
    make_fork_again(hosts.folder)
    assert hosts.hold("b", run="second") and hosts.made("b") == 2


@pytest.mark.usefixtures("ungated")
def test_a_host_drops_what_it_made_itself_for_what_the_fleet_has(hosts: Hosts, url: str) -> None:
    hosts.hold("a")
    shelf = hosts.enter("b")
    hosts.forget_store(url)
    hosts.hold("b")
    name = min(contents(shelf))
    program = next(path for path in (shelf / name / making.PREFIX).rglob("*.so*") if path.is_file())
    program.write_bytes(program.read_bytes() + b"of another training")
    hosts.forget_store(url)
    hosts.hold("a", run="second")
    assert hosts.hold("b", run="second") and hosts.taken("b") == 1
    assert any("is another file, and is dropped" in line for line in hosts.told["b"])
    assert contents(shelf) == contents(hosts.enter("a"))


@pytest.mark.usefixtures("ungated")
def test_a_run_never_measures_two_files_under_one_name(hosts: Hosts, url: str) -> None:
    hosts.hold("a")
    with Session(url) as session:
        session.execute("UPDATE dyno_build_runs SET content = repeat('0', 64)")
    with pytest.raises(UserError, match="is another file now, made on host a, than run first began with"):
        hosts.hold("b")
    assert not hosts.enter("b").exists()


@pytest.mark.usefixtures("ungated")
def test_who_waits_for_a_build_of_a_run_that_is_withdrawn_stops(hosts: Hosts, url: str) -> None:
    hosts.levels = ("-O2",)
    slow = hosts.made_slow()
    child = multiprocessing.get_context("fork").Process(target=hosts.hold, args=("a",))
    child.start()
    wait_for("a host makes it", lambda: hosts.makers() == ["a"], 60.0)
    assert not hosts.hold("b", goes_on=lambda: False)
    slow.unlink()
    child.join()
    assert child.exitcode == 0 and hosts.made("b") == 0


def test_a_baseline_that_fails_the_gate_on_one_host_fails_on_all(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_fork_again(hosts.folder, CODE + wrong_code(LOSES_ROWS))
    monkeypatch.setattr(build_check, "OPERATIONS", 2000)
    with pytest.raises(BaselineFailed, match="balances_equal"):
        hosts.hold("a")
    monkeypatch.setattr(build_check, "_ask", None)
    with pytest.raises(BaselineFailed, match="balances_equal"):
        hosts.hold("b")


def make_fork_again(folder: Path, code: str = CODE) -> None:
    shutil.rmtree(folder / "fork")
    make_fork(folder, code)


@contextmanager
def started(act: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()
