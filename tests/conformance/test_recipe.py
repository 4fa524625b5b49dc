"""The round trip of a recipe: settings that Dyno's launcher measured are in effect on a server that was
started from the recipe's files alone, and a server without them is told from it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.deploy.check import State, checked
from dbdyno.deploy.deployment import Deployment
from dbdyno.deploy.files import (
    FilePlacement,
    files_beside,
    files_for_host,
    read_recipe_folder,
    write_recipe_folder,
)
from dbdyno.deploy.made import production_of
from dbdyno.driver.passwords import query
from dbdyno.engines.mariadb.settings import folders as mariadb_folders
from dbdyno.engines.mysql.settings import folders as mysql_folders
from dbdyno.engines.server import url_of
from dbdyno.errors import DriverFailed
from dbdyno.frozen import Level
from dbdyno.host.namespaces import step_down
from dbdyno.host.process import confine, kill_family
from dbdyno.obtain.installation import Installation
from tests.conformance.conftest import Bench
from tests.deploy.recipes import recipe
from tests.needs import IS_ROOT

pytestmark = pytest.mark.engine

SETTINGS: dict[str, dict[str, tuple[Level, Level]]] = {
    "mariadb": {
        "innodb_io_capacity": (200, 345),
        "innodb_buffer_pool_size": ("128M", "64M"),
        "sql_mode": ("", "STRICT_TRANS_TABLES,NO_ZERO_DATE"),
        "old_mode": ("UTF8_IS_UTF8MB3", ""),
        "log_bin": (False, True),
    },
    "mysql": {"innodb_io_capacity": (200, 345), "innodb_flush_log_at_trx_commit": (1, 2)},
    "postgresql": {
        "work_mem": ("4MB", "5MB"),
        "shared_buffers": ("128MB", "32MB"),
        "synchronous_commit": ("on", "off"),
        "log_line_prefix": ("%m", "%m [%p] it's "),
    },
    "firebird": {"DefaultDbCachePages": (2048, 3000), "ReadConsistency": (True, False)},
    "sqlite": {
        "synchronous": ("full", "normal"),
        "journal_mode": ("delete", "wal"),
        "cache_size": (-2000, "8M"),
    },
}
CLIENT = """\
import json, sys
from dbdyno.driver import _driver
for row in json.loads(_driver.query(sys.argv[1], sys.argv[2]))["rows"]:
    print(*row, sep="\\t")
"""
READY_S = 60.0


def of(*engines: str) -> pytest.MarkDecorator:
    """For a test of these engines alone."""
    return pytest.mark.parametrize("bench", engines, indirect=True)


def answered(bench: Bench, deployment: Deployment) -> Deployment:
    """The recipe with what a server of Dyno's own launcher answers: that is what a trial keeps."""
    chosen = {change.factor.partition(".")[2]: change.level for change in deployment.changes}
    server = bench.start(chosen)
    readings = bench.engine.settings.read(bench.ask(server), frozenset(chosen))
    server.stop()
    changes = tuple(
        change.model_copy(update={"statement": reading.source, "answer": reading.value})
        for change in deployment.changes
        for reading in (readings[change.factor.partition(".")[2]],)
    )
    return deployment.model_copy(update={"changes": changes, "version": server.version})


@pytest.fixture
def written(bench: Bench, tmp_path: Path) -> Path:
    """The recipe's folder."""
    bench.initialise()
    factors = {f"config.{name}": levels for name, levels in SETTINGS[bench.engine.name].items()}
    production = production_of(bench.engine)
    deployment = answered(bench, recipe(bench.engine, factors, version=bench.installation.version))
    for_host = files_for_host(deployment, production)
    folder = tmp_path / "recipe"
    write_recipe_folder(folder, [*for_host, *files_beside(deployment, production, for_host)])
    return folder


def applied(folder: Path, root: Path) -> None:
    root.mkdir()
    subprocess.run([str(folder / "apply")], env={**os.environ, "DESTDIR": str(root)}, check=True)


Started = Callable[[Installation, Path, Path, Path], tuple[list[str], str]]


def mariadb(installation: Installation, data: Path, root: Path, runtime: Path) -> tuple[list[str], str]:
    """As Debian lays it out: one file that includes a folder."""
    included = root / "etc/mysql/mariadb.conf.d"
    return _with_option_files(installation, mariadb_folders(installation), data, included, runtime)


def mysql(installation: Installation, data: Path, root: Path, runtime: Path) -> tuple[list[str], str]:
    included = root / "etc/mysql/mysql.conf.d"
    return _with_option_files(installation, mysql_folders(installation), data, included, runtime)


def _with_option_files(
    installation: Installation, places: list[str], data: Path, included: Path, runtime: Path
) -> tuple[list[str], str]:
    included.mkdir(parents=True, exist_ok=True)
    own = runtime / "my.cnf"
    lines = (
        "[mysqld]",
        f"datadir={data / 'database'}",
        f"tmpdir={data / 'temporary'}",
        f"socket={runtime / 's'}",
        f"pid-file={runtime / 'pid'}",
        "skip-networking",
        "loose-mysqlx=OFF",
        f"!includedir {included}",
    )
    own.write_text("\n".join(lines) + "\n")
    user = ["--user=root"] if IS_ROOT else []
    command = [*installation.command, f"--defaults-file={own}", *places, *user]
    return command, url_of("mysql", runtime / "s")


def postgresql(installation: Installation, data: Path, root: Path, runtime: Path) -> tuple[list[str], str]:
    """As Debian lays it out: the configuration includes a folder."""
    release = installation.version.split(".")[0]
    included = root / f"etc/postgresql/{release}/main/conf.d"
    included.mkdir(parents=True, exist_ok=True)
    with (data / "database" / "postgresql.conf").open("a") as file:
        file.write(
            f"include_dir = '{included}'\nlisten_addresses = ''\nunix_socket_directories = '{runtime}'\n"
        )
    return [*installation.command, "-D", str(data / "database")], url_of(
        "postgresql", runtime / ".s.PGSQL.5432"
    )


STARTED: Mapping[str, Started] = {"mariadb": mariadb, "mysql": mysql, "postgresql": postgresql}


@contextmanager
def running(bench: Bench, root: Path) -> Iterator[str]:
    """A server on the data, started by its own program and the files below a root. Gives its URL."""
    with tempfile.TemporaryDirectory(prefix="dyno-test-") as folder:
        runtime = Path(folder)
        runtime.chmod(0o777)
        command, url = STARTED[bench.engine.name](bench.installation, bench.data, root, runtime)
        before = step_down("engine", "PostgreSQL") if bench.engine.name == "postgresql" else ()
        with (runtime / "log").open("wb") as log:
            child = subprocess.Popen(
                command,
                env={**os.environ, **bench.installation.environment},
                stdout=log,
                stderr=log,
                cwd=runtime,
                preexec_fn=confine(before_exec=before),
            )
        try:
            wait_until_ready(url, child, runtime / "log")
            yield url
        finally:
            child.terminate()
            try:
                child.wait(READY_S)
            finally:
                kill_family(child)


def wait_until_ready(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while child.poll() is None and time.monotonic() < deadline:
        try:
            query(url, "SELECT 1")
        except DriverFailed:
            time.sleep(0.05)
        else:
            return
    pytest.fail(log.read_text(errors="replace")[-2000:])


@of("mariadb", "mysql", "postgresql")
def test_a_server_started_from_the_files_alone_reads_back_every_setting(
    bench: Bench, written: Path, tmp_path: Path, homes: Path
) -> None:
    applied(written, tmp_path / "root")
    with running(bench, tmp_path / "root") as url:
        found = checked(read_recipe_folder(written), bench.engine, url, None)
        assert {finding.factor: finding.state for finding in found.findings} == {
            "version": State.IN_EFFECT,
            **{f"config.{name}": State.IN_EFFECT for name in SETTINGS[bench.engine.name]},
        }
        said = by_script(written, tmp_path, url)
        assert said.returncode == 0, said.stdout


@of("mariadb", "mysql", "postgresql")
def test_a_server_without_the_files_is_told_from_it(
    bench: Bench, written: Path, tmp_path: Path, homes: Path
) -> None:
    with running(bench, tmp_path / "root") as url:
        found = checked(read_recipe_folder(written), bench.engine, url, None)
        named = {finding.factor.partition(".")[2] for finding in found.differing}
        assert named == SETTINGS[bench.engine.name].keys()
        said = by_script(written, tmp_path, url)
        assert said.returncode == 1
        for name in SETTINGS[bench.engine.name]:
            assert f"DIFFERS  {name}: " in said.stdout


def by_script(folder: Path, tmp_path: Path, url: str) -> subprocess.CompletedProcess[str]:
    """The recipe's own check, with a client that speaks through the driver."""
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    asked = {"CLIENT": f"{sys.executable} {client} {url}", "DESTDIR": str(tmp_path / "root")}
    return subprocess.run(
        [str(folder / "check")], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )


# The processes of PostgreSQL write their titles over the environment that the kernel shows.
@of("mariadb", "mysql")
def test_the_environment_of_the_files_reaches_the_process(
    bench: Bench, tmp_path: Path, homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.initialise()
    tunable = "glibc.malloc.arena_max=2"
    deployment = recipe(bench.engine, {"memory.malloc": ("default", tunable)})
    [file] = files_for_host(deployment, production_of(bench.engine))
    with running(bench, tmp_path / "root") as url:
        [_, finding] = checked(deployment, bench.engine, url, None).findings
        assert finding.state is State.DIFFERS
    pattern = r"^(\w+) = '(.*)'$" if file.way is FilePlacement.LAST else r'^Environment="(\w+)=(.*)"$'
    [(name, value)] = re.findall(pattern, file.content.decode(), re.MULTILINE)
    monkeypatch.setenv(name, value)
    with running(bench, tmp_path / "root") as url:
        [_, finding] = checked(deployment, bench.engine, url, None).findings
        assert finding.state is State.IN_EFFECT, finding.reason


@of("firebird")
def test_firebird_reads_the_first_of_two_lines_as_the_recipe_expects(
    bench: Bench, written: Path, tmp_path: Path
) -> None:
    server = bench.start({"DefaultDbCachePages": 2222, "ReadConsistency": True})
    own = bench.runtime / "firebird" / "firebird.conf"
    root = tmp_path / "root"
    (root / "opt/firebird").mkdir(parents=True)
    shutil.copy(own, root / "opt/firebird/firebird.conf")
    subprocess.run([str(written / "apply")], env={**os.environ, "DESTDIR": str(root)}, check=True)
    shutil.copy(root / "opt/firebird/firebird.conf", own)
    deployment = read_recipe_folder(written)
    readings = bench.engine.settings.read(bench.ask(server), frozenset(SETTINGS["firebird"]))
    assert {name: reading.value for name, reading in readings.items()} == {
        change.factor.partition(".")[2]: change.answer for change in deployment.changes
    }


@of("sqlite")
def test_sqlites_statements_give_what_was_measured(bench: Bench, written: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "data.sqlite") as connection:
        connection.executescript((written / "connection.sql").read_text())
        changes = read_recipe_folder(written).changes
        assert changes
        for change in changes:
            [value] = connection.execute(change.statement).fetchone()
            assert str(value) == change.answer
