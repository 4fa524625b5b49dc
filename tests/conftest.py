"""Fixtures that every test may use."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import gc
import hashlib
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# First, because Dyno's modules keep the environment that they are imported with.
from tests.needs import INITDB, OF_SESSION, lasting_folder  # isort: split

import pytest
from hypothesis import HealthCheck, settings

from dbdyno import build_check
from dbdyno.cli.preferences import KEYS
from dbdyno.engines.engine import Life
from dbdyno.engines.mariadb import server as mariadb
from dbdyno.engines.mysql import server as mysql
from dbdyno.engines.postgresql import server as postgresql
from dbdyno.engines.registry import ENGINES
from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.host import cache, clone, paths
from dbdyno.host.clone import clone_unsynced, sync_file_system
from dbdyno.host.room import memory_limit, require_disk
from dbdyno.layers.setup import Setup
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation, covers
from dbdyno.obtain.source import making
from dbdyno.obtain.source.reuse import SWITCHED_OFF
from dbdyno.records import database
from dbdyno.study.nouns import Reference
from dbdyno.trial import pristine
from dbdyno.trial.acts import engine as acts_engine
from dbdyno.trial.bench import Bench
from dbdyno.trial.given import BroughtData
from tests import skips
from tests.progress import FAILED_AS, KEPT_AS, Progress
from tests.records.postgresql import PostgreSQL

ROOT = Path(__file__).parents[1]

# How fast an example runs says something of the machine, and nothing of the code. Examples are the same
# each time, because a change must not fail by what it has not touched; `make explore` draws others.
settings.register_profile(
    "dyno", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", settings.get_profile("dyno"), derandomize=False, max_examples=2000, print_blob=True
)
settings.load_profile("dyno")

# A shell without job control lets what runs in the background ignore Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


LONG = (
    "cli/test_jobs.py", "cli/test_odd_places.py", "trial/acts/test_cluster.py", "conformance/test_engines.py",
    "cli/test_soak.py", "conformance/test_given.py", "conformance/test_tpcc.py", "deploy/test_scripts.py",
    "cli/test_live.py", "cli/test_builds.py", "cli/test_driver.py", "cli/test_gate.py",
    "cli/test_jobs_typed.py", "engines/test_put_back.py", "conformance/test_sessions.py",
    "cli/test_documentation.py", "conformance/test_layers.py", "cli/test_tune.py",
    "deploy/test_scripts_under_faults.py", "conformance/test_plans.py", "report/test_pages.py",
    "cli/test_running.py", "trial/acts/test_meanwhile.py", "prepare_run/test_platform_probe.py",
    "cli/test_bad_luck.py", "kinds/test_comparison.py", "engines/test_struck.py", "analyse/test_bisect.py",
    "cli/test_evaluate.py", "analyse/test_estimate.py", "report/test_html.py", "test_simulation.py",
    "prepare_run/test_study_here.py", "cli/test_run.py", "test_bench_fleet.py", "trial/test_pristine.py",
    "cli/test_fleet.py", "cli/test_bombs.py", "cli/test_running_mysql.py", "cli/test_training.py",
    "conformance/test_replay.py", "host/test_killed_host.py", "cli/test_resume.py",
    "patches/test_pollset_back_end.py", "obtain/source/test_toolchain.py", "test_tidy.py",
    "trial/acts/test_rounds.py", "test_pipelines.py", "cli/test_runs.py", "records/test_losses.py",
    "conformance/test_recipe.py", "conformance/test_lua.py", "analyse/test_effects.py",
    "analyse/test_trend.py", "conformance/test_ycsb.py", "conformance/test_production.py",
    "cli/test_questions.py", "cli/test_bisect.py", "cli/test_network.py", "prepare_run/test_kept_columns.py",
    "cli/test_start.py", "cli/test_calibrate.py", "test_build_check.py", "obtain/test_debian.py",
    "sql_logs/test_hostile.py", "conformance/test_traffic.py", "engines/postgresql/test_build.py",
    "trial/test_around_load.py", "datasets/vectors/test_search.py", "test_run.py",
    "prepare_run/test_own_files.py", "report/test_forms.py", "report/test_lacking.py", "cli/test_init.py",
    "layers/test_build.py", "engines/test_configuration.py", "findings/test_hosts.py",
    "publish/test_verified.py",
)  # fmt: skip
"""Files that take longest. They come first, so that no worker begins one when the other has nothing left.
Those that mostly wait lie among those that compute, so that no CPU has nothing to do."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--progress", action="store_true", help="print where the run is")


OF_PLACE = (
    "prepare_run/test_writes", "cli/test_cache", "cli/test_cli", "cli/test_encoding", "cli/test_man",
    "cli/test_running.py", "deploy/test_check", "deploy/test_evidence", "deploy/test_f", "deploy/test_made",
    "deploy/test_scripts.py", "export/", "host/", "kinds/test_bisection",
    "obtain/source/test_toolchain", "obtain/test_", "records/test_store", "report/words/",
    "serve/test_address", "serve/test_browser", "serve/test_drawer", "serve/test_pages",
    "study/test_values", "test_needs",
    "test_passwords", "test_progress", "test_skips", "test_tidy",
)  # fmt: skip
"""Files that ask most of the place where they run: its user, homes, programs, servers, locale, zone, paths.
The mark `place` chooses their tests."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("progress") and not hasattr(config, "workerinput"):
        terminal = config.pluginmanager.getplugin("terminalreporter")

        def say(line: str) -> None:
            terminal.write_line(line)
            # A log is to have the line when it is said, and not with the next eight kilobytes.
            terminal.flush()

        kept = config.cache
        timed, failures = (kept.get(KEPT_AS, {}), kept.get(FAILED_AS, [])) if kept is not None else ({}, [])
        config.pluginmanager.register(Progress(timed, say, LONG, failures))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each CPU and one more, because they wait for their servers half of the time; and no
    more than there are GiB of memory, because each may have a server with its data."""
    return max(1, min(2 * len(os.sched_getaffinity(0)) + 1, memory_limit()[0] >> 30))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {Path(__file__).parent / name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path, len(LONG)))
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(OF_PLACE):
            item.add_marker(pytest.mark.place)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end, so looking for garbage in it finds nothing. Workers
    spend a twentieth of their time in looking for it elsewhere, if that is done as often as by default.
    What draws figures is bundled once for all workers."""
    if (page := sys.modules.get("dbdyno.report.renderers.page")) is not None:
        setattr(page, "vega", functools.cache(functools.partial(once_in_session, "vega.js", page.vega)))  # noqa: B010
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    lay_in_huge_pages()


COLLAPSE, HUGE_BYTES = 25, 2 << 20
"""MADV_COLLAPSE (linux/mman.h), and what a huge page holds."""


def lay_in_huge_pages() -> None:
    """Has the kernel lay what this process holds in huge pages, where it can (Linux 6.1): a fork copies each
    entry of the page tables, a worker has a hundred thousand of them, and it forks for each server."""
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, file, *name = line.split()
        if rights != "rw-p" or file != "0" or name not in ([], ["[heap]"]):
            continue
        first, last = (int(one, 16) for one in addresses.split("-"))
        for address in range(-(-first // HUGE_BYTES) * HUGE_BYTES, last - HUGE_BYTES + 1, HUGE_BYTES):
            libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(HUGE_BYTES), COLLAPSE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that is skipped for a reason that is not allowed."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        objected = skips.objection(report.longrepr[2], skips.allowed(), skips.required())
        if objected is not None:
            report.outcome, report.longrepr = "failed", objected
    return report


@contextmanager
def kept_for_all(name: str) -> Iterator[Path]:
    """What one worker makes at this place for all of a session; no other one looks at it within."""
    OF_SESSION.mkdir(exist_ok=True)
    kept = OF_SESSION / name
    with cache.held(kept.with_suffix(".lock")):
        yield kept


def once_in_session(name: str, make: Callable[[], str]) -> str:
    """What `make` gives, which one worker asks for on behalf of all of a session."""
    if not OF_SESSION.parent.is_dir():
        return make()
    with kept_for_all(name) as kept:
        if not kept.exists():
            kept.write_bytes(make().encode())
        return kept.read_bytes().decode()


DYNO = [sys.executable, "-c", "from dbdyno.cli import main; main()"]
"""The command, as a process of its own."""


# Of servers that a test can fetch, those that the distribution installed are not seen.
for packaged in (mariadb.SERVER, mysql.SERVER):
    object.__setattr__(packaged, "places", ())
mariadb.ON_HOST = Path(os.devnull)


def copied_data(life: Life) -> Callable[[Installation, Path, Mapping[str, Level]], None]:
    """Has an engine make empty data once for all trials of a session that ask for the same, and copies them,
    as the flow copies what it filled. Data outside of Dyno's cache are made each time: a server that tests
    take for a user's has an identity of its own."""
    initialise = life.initialise

    def make(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        if installation.writes or not data.is_relative_to(paths.cache()):
            initialise(installation, data, settings)
            return
        shape = f"{installation.version} {installation.digest} {sorted(settings.items())}"
        with kept_for_all(f"{installation.engine}-{hashlib.sha256(shape.encode()).hexdigest()[:16]}") as kept:
            if not kept.exists():
                begun = kept.with_suffix(f".{os.getpid()}")
                initialise(installation, begun, settings)
                begun.rename(kept)
        shutil.copytree(kept, data, copy_function=copy_without_holes)

    return make


def copy_without_holes(source: str, target: str) -> None:
    """Half of a server's new data are logs that hold nothing yet."""
    clone_unsynced(Path(source), Path(target))


def filled_once(
    making: Path,
    setup: Setup,
    creation: Mapping[str, Level],
    bench: Bench,
    seed: int,
    given: BroughtData | None,
) -> tuple[str, str]:
    """Fills data of real engines by workloads of Dyno's own twice in a session at most, because tests ask for
    the same data over and over. What one test alone asks for is not kept."""
    own = given is None and ENGINES.get(setup.engine.name) is setup.engine and not setup.data_maker.writes
    if not own or pristine._contents(setup.job, bench):
        return FILL(making, setup, creation, bench, seed, given)
    with kept_for_all(f"filled-{pristine._key(setup, creation, bench, seed)}") as kept:
        told, asked = kept.with_suffix(".json"), kept.with_suffix(".asked")
        if kept.exists():
            require_disk(making, pristine.SPARE_BYTES, "the pristine data")
            shutil.copytree(kept, making, copy_function=copy_without_holes, dirs_exist_ok=True)
            what, origin = json.loads(told.read_text())
            return what, origin
        found = FILL(making, setup, creation, bench, seed, given)
        if asked.exists():
            told.write_text(json.dumps(found))
            begun = kept.with_suffix(f".{os.getpid()}")
            shutil.copytree(making, begun, copy_function=copy_without_holes)
            begun.rename(kept)
        asked.touch()
    return found


FILL = pristine._make
LIVES: tuple[Life, ...] = (mariadb, mysql, postgresql)
COPIED = [(life, copied_data(life)) for life in LIVES]
SYNC, SYNC_FILE_SYSTEM = os.fsync, sync_file_system


def wait_for_no_disk(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Has this process wait for no disk of whoever runs the tests, because no power cut reaches it, and all
    workers and servers wait for each other there. Volumes of Dyno's own and devices are put on disk, since
    tests cut their power."""
    disk = folder.stat().st_dev

    def sync(file: int | IO[Any]) -> None:
        status = os.fstat(file if isinstance(file, int) else file.fileno())
        if status.st_dev != disk or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            SYNC(file)

    def sync_others(place: Path) -> None:
        if place.stat().st_dev != disk:
            SYNC_FILE_SYSTEM(place)

    patch.setattr(os, "fsync", sync)
    for module in (cache, clone):
        patch.setattr(module, "sync_file_system", sync_others)
    settings_of_store = tuple(one.replace("=FULL", "=OFF") for one in database.DURABLE)
    patch.setattr(database, "DURABLE", settings_of_store)


@contextmanager
def homes_in(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Dyno's own folders, all inside a folder. Gives that folder."""
    for variable in ("DATA", "CACHE", "STATE", "CONFIG"):
        patch.setenv(f"XDG_{variable}_HOME", str(folder / variable.lower()))
    patch.setenv(paths.HOST_VARIABLE, str(folder / "host"))
    # A build of a test is made by its own commands, whether ccache is here or not.
    patch.setenv(SWITCHED_OFF, "1")
    for key in KEYS.values():
        patch.delenv(key.variable, raising=False)
    for life, copied in COPIED:
        patch.setattr(life, "initialise", copied)
    patch.setattr(pristine, "_make", filled_once)
    wait_for_no_disk(folder, patch)
    # A process remembers which builds failed.
    patch.setattr(making, "_failures", {})
    # A kill lies in the midst of a load after a moment too. `trial/acts/test_engine.py` waits as users do.
    patch.setattr(acts_engine, "TOLD_AFTER_S", 0.3)
    patch.setattr(acts_engine, "KILLED_AFTER_S", 0.1)
    # A socket's path has little room, and pytest's own folders are deep.
    with tempfile.TemporaryDirectory(prefix="dyno-") as runtime:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        yield folder
    cache.release()


GET_FLAGS, SET_FLAGS, TOP_OF_TREES = 0x80086601, 0x40086602, 0x00020000
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_TOPDIR_FL (linux/fs.h)."""


def lay_apart(folder: Path) -> None:
    """Has ext4 lay what a folder will hold far apart. Without a journal it looks past all that was removed
    near by in the last minutes for each file that it makes, and tests remove many."""
    line = os.open(folder, os.O_RDONLY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(line, GET_FLAGS, struct.pack("l", 0)))[0]
        fcntl.ioctl(line, SET_FLAGS, struct.pack("l", flags | TOP_OF_TREES))
    except OSError:
        # Another file system has no such flag.
        pass
    finally:
        os.close(line)


@pytest.fixture(scope="session", autouse=True)
def folders_of_tests_lie_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    lay_apart(tmp_path_factory.getbasetemp())


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Dyno's own folders, all inside a folder of this test. Returns that folder."""
    with homes_in(tmp_path, monkeypatch) as folder:
        yield folder


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder outside of the short-lived places, where every server may write."""
    with tempfile.TemporaryDirectory(dir=lasting_folder(), prefix=".outside-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def fetched_engines() -> Path:
    """The folder of fetched engines of whoever runs the tests, with those that tests need."""
    # To ask for what is there reads the distribution's signed index, in each worker.
    if not any(covers("11.8", copy.version) for copy in debian.fetched("mariadb")):
        _fetch("mariadb@11.8")
    try:
        ENGINES["firebird"].obtaining.locate(Reference("firebird", "5"))
    except DynoError:
        _fetch("firebird@5")
    return paths.cache() / "engines"


def _fetch(engine: str) -> None:
    fetched = subprocess.run([*DYNO, "engines", "fetch", engine], capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(f"{engine} cannot be had here: {fetched.stderr.strip()}")


@pytest.fixture
def homes_with_engines(fetched_engines: Path, homes: Path) -> Path:
    """Like `homes`, but with the engines that were fetched already."""
    (paths.cache() / "engines").symlink_to(fetched_engines)
    return homes


@pytest.fixture(scope="module")
def store_server() -> Iterator[PostgreSQL]:
    """A PostgreSQL that can hold a store."""
    if INITDB is None:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    # A kill loses nothing that the kernel has.
    with PostgreSQL(settings="fsync = off\n") as found:
        yield found


@pytest.fixture
def quick_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each build is asked less. `tests/test_build_check.py` says what its check finds by how much."""
    monkeypatch.setattr(build_check, "OPERATIONS", 200)


@pytest.fixture(scope="session")
def shared_cache(fetched_engines: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for several tests, because the data of a server take many seconds to make."""
    home = tmp_path_factory.mktemp("cache")
    for folder in (home / "dyno", *(home / "dyno" / name for name in ("pristine", "trials"))):
        folder.mkdir(mode=0o700)
        lay_apart(folder)
    (home / "dyno" / "engines").symlink_to(fetched_engines)
    return home


@pytest.fixture
def homes_with_data(shared_cache: Path, homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Like `homes_with_engines`, but with the pristine data that earlier tests have made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    return homes
