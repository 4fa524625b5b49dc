"""What the engines' conformance suite needs: each engine obtained, a place for its data, a way to ask it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import pytest

from dbdyno.driver.passwords import query
from dbdyno.engines.engine import Ask, Engine, Server
from dbdyno.engines.registry import ENGINES
from dbdyno.engines.server import DATABASE, url_of_database
from dbdyno.errors import DriverFailed, DynoError, EngineMissing
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.cache import held
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Reference
from tests.conftest import copy_without_holes
from tests.needs import skipping_blocked


@dataclass(frozen=True)
class Sample:
    """What the suite must know of an engine to try it.

    `level` is not the default of `setting`; `creation` takes effect only when the data is made. `wrong` is a
    setting, a level that the engine does not take, and what it takes instead or says. `file` is a
    configuration file that sets `setting` to `level`, and nothing else that is taken.
    """

    setting: str
    level: Level
    creation: tuple[str, Level]
    misspelt: str
    meant: str
    wrong: tuple[tuple[str, Level, str], ...]
    file: str = ""
    version: str = ""


SAMPLES = {
    "mariadb": Sample(
        setting="innodb_io_capacity",
        level=345,
        creation=("innodb_page_size", "8K"),
        misspelt="innodb_bufer_pool_size",
        meant="innodb_buffer_pool_size",
        wrong=(
            ("innodb_buffer_pool_size", "128 MB", 'did you mean "128M"?'),
            ("innodb_buffer_pool_size", "1.5G", 'did you mean "1536M"?'),
            ("innodb_flush_log_at_trx_commit", 7, "it takes 0 to 3"),
            ("innodb_io_capacity", "many", "it takes 100 to"),
            ("binlog_format", "mixd", 'did you mean "MIXED"?'),
            ("innodb_doublewrite", "perhaps", "the server says: "),
        ),
        file="[mysqld]\nno_such_thing = 1\nloose_innodb-io-capacity=345\nskip-networking\nsocket=/x/y.sock\n",
        version="11.8",
    ),
    "firebird": Sample(
        setting="page_buffers",
        level=777,
        creation=("page_size", 16384),
        misspelt="DefaultDbCachePage",
        meant="DefaultDbCachePages",
        wrong=(
            ("TempCacheLimit", "64 MB", 'did you mean "64M"?'),
            ("ReadConsistency", "perhaps", "it takes true and false"),
            ("page_size", 5000, "it takes 4096"),
            ("page_buffers", "64K", "without a unit"),
        ),
        file="page_buffers = 777\nNoSuchThing = 1\nRemoteServicePort = 3051\n",
    ),
    "mysql": Sample(
        setting="innodb_io_capacity",
        level=345,
        creation=("innodb_page_size", "8K"),
        misspelt="innodb_bufer_pool_size",
        meant="innodb_buffer_pool_size",
        wrong=(
            ("innodb_buffer_pool_size", "128 MB", 'did you mean "128M"?'),
            ("innodb_buffer_pool_size", "1.5G", 'did you mean "1536M"?'),
            ("innodb_flush_log_at_trx_commit", 7, "it takes 0 to 2"),
            ("innodb_io_capacity", "many", "it takes 100 to"),
            ("binlog_format", "mixd", 'did you mean "MIXED"?'),
            ("innodb_doublewrite", "perhaps", "the server says: "),
        ),
        file="[mysqld]\nno_such_thing = 1\nloose_innodb-io-capacity=345\nskip-networking\nsocket=/x/y.sock\n",
    ),
    "postgresql": Sample(
        setting="work_mem",
        level="5MB",
        creation=("data_checksums", True),
        misspelt="shared_bufers",
        meant="shared_buffers",
        wrong=(
            ("shared_buffers", "128M", 'did you mean "128MB"?'),
            ("checkpoint_timeout", "5 minutes", 'did you mean "5min"?'),
            ("shared_buffers", 4, "outside the valid range"),
            ("wal_sync_method", "fdatasinc", 'did you mean "fdatasync"'),
            ("wal_segment_size", "3MB", "power of two"),
        ),
        file="work_mem = 5MB\nno_such_thing = on\nport = 5433\nshared_buffers = 128M\n",
    ),
    "sqlite": Sample(
        setting="synchronous",
        level="normal",
        creation=("page_size", 16384),
        misspelt="synchronus",
        meant="synchronous",
        wrong=(
            ("synchronous", "ful", 'did you mean "full"?'),
            ("journal_mode", "wall", 'did you mean "wal"?'),
            ("page_size", 5000, "it takes 512"),
            ("cache_size", "much", "a whole number"),
        ),
    ),
}
SESSIONS_CACHE = paths.cache_place()
ASK = """
import json, sys
from dbdyno.driver import _driver
try:
    print(_driver.query(sys.argv[1], sys.argv[2]))
except _driver.DriverError as error:
    print(json.dumps({"failed": [error.message, error.hint, error.kind]}))
"""


@cache
def obtain(name: str) -> tuple[Installation | None, str]:
    """The engine's installation, fetched when it is not here; or the reason why it cannot be had."""
    with pytest.MonkeyPatch.context() as patch:
        # It is kept for all tests, and the one that asks first may have folders that end with it.
        patch.setenv("XDG_CACHE_HOME", str(SESSIONS_CACHE.parent))
        return _obtained(name)


def _obtained(name: str) -> tuple[Installation | None, str]:
    engine = ENGINES[name]
    reference = Reference(name, SAMPLES[name].version or _version_with_clients(engine))
    try:
        return engine.obtaining.locate(reference), ""
    except EngineMissing:
        pass
    except DynoError as failed:
        return None, failed.message
    try:
        return engine.obtaining.fetch(reference.version, "", lambda line: print(line, file=sys.stderr)), ""
    except DynoError as failed:
        return None, failed.message


def _version_with_clients(engine: Engine) -> str:
    """The highest version here that has its clients beside it, such as pg_dump, which refuses a server that
    is newer than itself. A package of npm, which another test may have fetched, holds the server alone.
    Empty where there is none, or where a version is as good as another."""
    if engine.name != "postgresql":
        return ""
    here = [one.version for one in engine.obtaining.offers() if one.present and "npm " not in one.source]
    return max(here, key=lambda version: [int(part) for part in version.split(".")], default="")


@cache
def protocols() -> frozenset[str]:
    """What the driver speaks, as far as it is built."""
    try:
        driver = import_module("dbdyno.driver._driver")
    except ImportError:
        return frozenset()
    return frozenset(json.loads(driver.capabilities())["protocols"])


@dataclass
class Bench:
    """One engine ready to be tried. What it started is killed when the test ends."""

    engine: Engine
    installation: Installation
    sample: Sample
    data: Path
    runtime: Path
    pristine: Path
    servers: list[Server] = field(default_factory=list)

    def initialise(self, settings: Mapping[str, Level] | None = None) -> None:
        """Makes the data; without settings it is made once per session and copied, as the flow does it."""
        with skipping_blocked():
            if settings:
                self.engine.life.initialise(self.installation, self.data, settings)
                return
            self._make_pristine()
        shutil.copytree(self.pristine, self.data, copy_function=copy_without_holes)

    def _make_pristine(self) -> None:
        with held(self.pristine.with_name(f"{self.pristine.name}.lock")):
            if not self.pristine.exists():
                making = self.pristine.with_name(f"{self.pristine.name}.{os.getpid()}")
                self.engine.life.initialise(self.installation, making, {})
                making.rename(self.pristine)

    def start(self, settings: Mapping[str, Level] | None = None, launch: Launch | None = None) -> Server:
        how = launch or Launch()
        server = self.engine.life.start(self.installation, self.data, self.runtime, settings or {}, how)
        self.servers.append(server)
        return server

    def ask(self, server: Server) -> Ask:
        """Asks through the driver; an embedded engine in a process of its own, with its environment."""
        protocol = server.url.split(":", 1)[0]
        if protocol not in protocols():
            pytest.skip(f"the driver that is built here does not speak {protocol}")

        if server.process_ids:
            return partial(query, server.url)

        def ask(sql: str) -> list[list[str | float | None]]:
            done = subprocess.run(
                [sys.executable, "-c", ASK, server.url, sql],
                env={**os.environ, **server.driver_environment},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout)
            if "failed" in answer:
                if "does not speak" in answer["failed"][0]:
                    pytest.skip(f"{protocol} is not spoken here: {answer['failed'][0]}")
                raise DriverFailed(*answer["failed"])
            rows: list[list[str | float | None]] = answer["rows"]
            return rows

        return ask

    def empty(self) -> None:
        """Takes all tables from the server that runs, which another test uses next."""
        [server] = self.servers
        if self.engine.name == "postgresql":
            query(server.url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            return
        for sql in (f"DROP DATABASE {DATABASE}", f"CREATE DATABASE {DATABASE}"):
            query(url_of_database(server.url, "mysql"), sql)

    def read(self, server: Server, name: str) -> str:
        return self.engine.settings.read(self.ask(server), frozenset({name}))[name].value


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pristine data is kept for all workers of a session, a folder for each version of an engine."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "pristine"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def bench_for(name: str, folder: Path, shelf: Path) -> Iterator[Bench]:
    """The bench of an engine, whose data lie in a folder. Skips where the engine cannot be had."""
    installation, reason = obtain(name)
    if installation is None:
        pytest.skip(f"{name} cannot be had here: {reason}")
    runtime = Path(tempfile.mkdtemp(prefix="dyno-test-"))
    # Workers may have found different versions, because another test fetches one meanwhile.
    pristine = shelf / f"{name}-{installation.version}"
    made = Bench(ENGINES[name], installation, SAMPLES[name], folder / "data", runtime, pristine)
    try:
        yield made
    finally:
        for server in made.servers:
            server.kill()
        shutil.rmtree(runtime)
        # pytest keeps folders of modules to the end, and those of all servers take gigabytes.
        shutil.rmtree(made.data, ignore_errors=True)


@contextmanager
def started(name: str, settings: Mapping[str, Level], folder: Path, shelf: Path) -> Iterator[Server]:
    """A server of an engine with these settings, on data of its own."""
    with bench_for(name, folder, shelf) as made:
        made.initialise()
        yield made.start(settings)


WAITS_FOR_NO_DISK: dict[str, dict[str, Level]] = {
    "mariadb": {"innodb_flush_log_at_trx_commit": 0},
    "mysql": {"innodb_flush_log_at_trx_commit": 0, "sync_binlog": 0},
    "postgresql": {"fsync": "off"},
}


@contextmanager
def serving(name: str, folder: Path, shelf: Path) -> Iterator[Bench]:
    """The bench of an engine whose server runs with its defaults, for tests that `empty` it. It waits for no
    disk, because they ask nothing of durability."""
    with bench_for(name, folder, shelf) as made:
        made.initialise()
        made.start(WAITS_FOR_NO_DISK.get(name))
        yield made


@pytest.fixture(params=sorted(ENGINES))
def bench(request: pytest.FixtureRequest, tmp_path: Path, shelf: Path) -> Iterator[Bench]:
    with bench_for(request.param, tmp_path, shelf) as made:
        yield made
