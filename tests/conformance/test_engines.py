"""What every engine must do, tried on every engine that can be had here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import pytest

from dbdyno.analyse.schema import compared_schemas
from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.driver.passwords import conversation, query
from dbdyno.driver.tally import Acknowledged
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration
from dbdyno.engines.engine import Server
from dbdyno.engines.registry import ENGINES
from dbdyno.errors import DriverFailed, DynoError, EngineMissing, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch, why_writable
from dbdyno.obtain import debian
from dbdyno.obtain.installation import Installation, Offer, covers
from dbdyno.records.metrics import GAUGES, GaugeSource
from dbdyno.study.nouns import Reference
from dbdyno.trial.answers import known_answers, read_schema
from tests.conformance.conftest import SAMPLES, Bench, bench_for

pytestmark = pytest.mark.engine

SHOWS_CERTIFICATE = "SHOW VARIABLES LIKE 'ssl_cert'"


@pytest.fixture(scope="module", params=sorted(ENGINES))
def name(request: pytest.FixtureRequest) -> str:
    """An engine's name. All of its tests follow one another."""
    return str(request.param)


@pytest.fixture(scope="module")
def up(name: str, shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An engine whose server runs without any table, for all tests that do no more than ask it. Whoever
    started it speaks Turkish."""
    with bench_for(name, tmp_path_factory.mktemp("up"), shelf) as made:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LC_ALL", "tr_TR.UTF-8")
            made.initialise()
            made.start()
        yield made


@pytest.fixture
def bench(name: str, tmp_path: Path, shelf: Path) -> Iterator[Bench]:
    with bench_for(name, tmp_path, shelf) as made:
        yield made


def with_processes(bench: Bench) -> None:
    if bench.engine.embedded:
        pytest.skip("an embedded engine has no process of its own")


def gone(process_id: int, timeout_s: float = 20.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            if psutil.Process(process_id).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def ends(server: Server, timeout_s: float = 20.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while server.alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not server.alive()


def test_an_engine_is_initialised_started_and_stopped_and_leaves_nothing(bench: Bench) -> None:
    bench.initialise()
    server = bench.start()
    assert server.alive()
    assert server.ready_s >= 0
    processes = server.process_ids
    assert bool(processes) is not bench.engine.embedded
    assert server.version.startswith(bench.installation.version.rsplit(".", 1)[0])
    assert server.log_problems() == []
    server.stop()
    server.stop()
    assert not server.alive()
    assert all(gone(one) for one in processes)
    assert server.log_problems() == []
    left = [path for path in bench.runtime.rglob("*") if path.is_socket() or path.suffix in (".pid", ".lock")]
    assert left == []


def test_an_engine_has_the_same_locale_for_every_user(up: Bench) -> None:
    [server] = up.servers
    seen = server.driver_environment
    if server.process_ids:
        seen = psutil.Process(server.process_ids[0]).environ()
    assert seen.get("LC_ALL") == (None if up.engine.name == "sqlite" else "C.UTF-8"), "SQLite looks at none"


def test_an_installation_says_what_it_is(bench: Bench) -> None:
    installation = bench.installation
    assert installation.engine == bench.engine.name
    assert installation.version
    assert installation.origin
    assert installation.digest
    assert any(
        offer.present and offer.version == installation.version for offer in bench.engine.obtaining.offers()
    )


def test_a_version_that_is_not_here_is_missing_with_a_remedy(bench: Bench) -> None:
    with pytest.raises(EngineMissing) as missing:
        bench.engine.obtaining.locate(Reference(bench.engine.name, "99.7"))
    assert "99.7" in missing.value.message
    assert missing.value.hint


def test_the_settings_are_known_by_name(bench: Bench) -> None:
    names = bench.engine.settings.names(bench.installation)
    assert bench.sample.setting in names
    assert bench.sample.meant in names
    assert bench.sample.misspelt not in names
    assert bench.engine.settings.CREATION & names


def test_what_settings_need_are_settings_themselves(bench: Bench) -> None:
    names = bench.engine.settings.names(bench.installation)
    for need in bench.engine.settings.NEEDS:
        assert {need.other, *need.settings} <= names
        assert not bench.engine.settings.refused(bench.installation, {need.other: need.unset})


def test_a_level_that_the_engine_cannot_take_is_refused_with_what_it_takes(bench: Bench) -> None:
    sample, installation = bench.sample, bench.installation
    good = dict([(sample.setting, sample.level), sample.creation])
    assert bench.engine.settings.refused(installation, good) == {}
    for name, level, takes in sample.wrong:
        found = bench.engine.settings.refused(installation, {**good, name: level})
        assert list(found) == [name], (name, level)
        assert takes in found[name].takes, found


def test_a_configuration_file_gives_what_the_engine_takes(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(bench.sample.file)
    found = read_configuration(bench.engine, bench.installation, "file", tmp_path)
    taken = {f"config.{bench.sample.setting}": str(bench.sample.level)} if bench.sample.file else {}
    assert found.settings == taken
    lines = [line for line in bench.sample.file.splitlines() if not line.startswith("[")]
    assert len(found.not_taken) == len(lines) - len(taken)


def test_a_changed_setting_is_read_back_and_so_is_one_of_the_data_itself(up: Bench, bench: Bench) -> None:
    sample, same = bench.sample, bench.engine.settings.same
    default = up.read(up.servers[0], sample.setting)
    assert not same(sample.setting, sample.level, default)
    setting, level = sample.creation
    bench.initialise({setting: level})
    changed = bench.start({setting: level, sample.setting: sample.level})
    assert same(sample.setting, sample.level, bench.read(changed, sample.setting))
    assert same(setting, level, bench.read(changed, setting))


def test_a_setting_that_no_one_knows_is_left_out_of_a_reading(up: Bench) -> None:
    ask = up.ask(up.servers[0])
    assert up.engine.settings.read(ask, frozenset({up.sample.misspelt})) == {}


def test_the_status_counts(up: Bench) -> None:
    counters = up.engine.counters.status(up.ask(up.servers[0]))
    # Firebird's end with its last attachment, and are then left out.
    assert bool(counters) is (up.engine.name != "firebird")
    assert all(isinstance(value, float) for value in counters.values())


def test_what_an_engine_holds_is_told_by_the_names_of_gauges(up: Bench) -> None:
    """Dyno asks from its own process, where an engine in the load process tells nothing."""
    held = up.engine.counters.held(partial(query, up.servers[0].url))
    assert bool(held) is not up.engine.embedded
    assert all(GAUGES[name].source is GaugeSource.ENGINE and value >= 0.0 for name, value in held.items())
    assert up.engine.embedded or "undo" in held


def test_what_an_engine_is_asked_each_second_is_a_part_of_its_counters(up: Bench) -> None:
    """And its sessions are at something while they work: the one that asks is left out."""
    counters, url = up.engine.counters, up.servers[0].url
    if up.engine.embedded:
        return
    with conversation(url) as ask:
        sampled, status = counters.sampled(ask), counters.status(ask)
        assert sampled and set(sampled) <= set(status)
        assert counters.view(dict.fromkeys(sampled, 1.0))
        assert counters.waits(ask) == {} or all(counters.waits(ask).values())


def test_a_server_tells_its_tables_and_its_own_defaults(up: Bench) -> None:
    asked, ask = up.engine.compared, up.ask(up.servers[-1])
    assert asked is not None
    assert ask(asked.columns) == [], "it runs without any table"
    defaults = {str(name): value for name, value in ask(asked.defaults)}
    assert len(defaults) > 10
    name, value = KNOWN_DEFAULTS[up.engine.name]
    assert str(defaults[name]) == value


DIALECT = {"postgresql": "GENERATED ALWAYS AS (total * 2) STORED", "firebird": "COMPUTED BY (total * 2)"}
SHOP = (
    "CREATE TABLE dyno_customers (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40) DEFAULT 'nobody')",
    "CREATE TABLE dyno_orders (id INTEGER NOT NULL PRIMARY KEY, total INTEGER, doubled INTEGER {doubled},"
    " {quote}select{quote} INTEGER)",
    "CREATE INDEX dyno_by_total ON dyno_orders (total)",
)


def test_a_server_tells_its_schema_and_which_names_it_reserves(up: Bench) -> None:
    ask, asked = up.ask(up.servers[0]), up.engine.compared
    assert asked is not None
    doubled = DIALECT.get(up.engine.name, "AS (total * 2) STORED")
    for sql in SHOP:
        ask(sql.format(doubled=doubled, quote=asked.quote))
    schema = read_schema(ask, up.engine, asked)
    told = {thing.lower(): value for thing, value in schema.told.items()}
    assert schema.reserved == ("select",) and "database" in told
    assert told["dyno_orders.doubled"]["type"].lower().startswith(("int", "long"))
    assert "40" in told["dyno_customers.name"]["type"]
    assert "nobody" in told["dyno_customers.name"]["default"]
    [index] = [value for thing, value in told.items() if "dyno_by_total" in thing]
    assert "total" in index.get("definition", index.get("columns", "")).lower()
    assert read_schema(ask, up.engine, asked) == schema
    ask("DROP INDEX dyno_by_total" + (" ON dyno_orders" if asked.quote == "`" else ""))
    [lost] = compared_schemas("other", schema, read_schema(ask, up.engine, asked)).differences
    assert "dyno_by_total" in lost.thing.lower() and (lost.what, lost.after) == ("exists", "no")
    for table in ("dyno_orders", "dyno_customers"):
        ask(f"DROP TABLE {table}")


def test_what_was_written_is_there_after_a_restart_on_a_copy(bench: Bench, tmp_path: Path) -> None:
    """Pristine data is a folder that can be copied."""
    bench.initialise()
    first = bench.start()
    ask = bench.ask(first)
    ask("CREATE TABLE kept (a BIGINT)")
    ask("INSERT INTO kept VALUES (41)")
    first.stop()
    copy = tmp_path / "copy"
    shutil.copytree(bench.data, copy)
    shutil.rmtree(bench.data)
    bench.data = copy
    again = bench.start()
    assert [float(row[0] or 0) for row in bench.ask(again)("SELECT a FROM kept")] == [41.0]


def test_data_are_taken_over_with_all_their_rows(bench: Bench, tmp_path: Path) -> None:
    """By the same version, whose tools are here where a study's are; other versions stand in studies."""
    upgrading, own = bench.engine.upgrading, bench.installation
    assert upgrading is not None
    if (lacking := upgrading.lacking(own, own)) is not None:
        pytest.skip(f"{bench.engine.name} cannot be had here: {lacking.message}")
    bench.initialise()
    first = bench.start()
    bench.ask(first)("CREATE TABLE kept (a BIGINT)")
    bench.ask(first)("INSERT INTO kept VALUES (41)")
    first.stop()
    runtime = bench.runtime / "u"
    runtime.mkdir()
    assert upgrading.take_over(own, own, bench.data, runtime, {})
    again = bench.start()
    assert [float(row[0] or 0) for row in bench.ask(again)("SELECT a FROM kept")] == [41.0]
    assert again.log_problems() == []


def test_series_tell_which_version_is_older(bench: Bench) -> None:
    upgrading, version = bench.engine.upgrading, bench.installation.version
    assert upgrading is not None
    assert upgrading.series("1.0.0") < upgrading.series(version) <= upgrading.series(f"{version}.9")


def test_a_misspelt_setting_fails_the_start_with_the_name_that_is_meant(bench: Bench) -> None:
    bench.initialise()
    with pytest.raises(ServerFailed) as failed:
        bench.start({bench.sample.misspelt: "1"})
    assert bench.sample.misspelt in failed.value.hint + failed.value.message
    assert f"`{bench.sample.meant}`" in failed.value.hint
    assert bench.engine.embedded or bench.sample.misspelt in failed.value.log.replace("-", "_")


def test_data_that_is_not_there_is_refused(bench: Bench) -> None:
    with pytest.raises(UserError) as refused:
        bench.start()
    assert refused.value.hint


def test_broken_data_fails_with_the_log(bench: Bench) -> None:
    with_processes(bench)
    bench.initialise()
    for path in bench.data.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff" * min(4096, path.stat().st_size))
    with pytest.raises(ServerFailed) as failed:
        bench.start()
    assert failed.value.log
    assert "while it was starting" in failed.value.message


def test_a_killed_server_is_dead_and_comes_back_on_its_data(bench: Bench) -> None:
    bench.initialise()
    server = bench.start()
    processes = server.process_ids
    server.kill()
    server.kill()
    assert not server.alive()
    assert all(gone(one) for one in processes)
    again = bench.start()
    assert again.alive()
    again.stop()


def test_a_server_that_will_not_stop_is_killed_and_that_is_said(bench: Bench) -> None:
    with_processes(bench)
    bench.initialise()
    server = bench.start()
    processes = server.process_ids
    os.kill(processes[0], signal.SIGSTOP)
    with pytest.raises(ServerFailed, match="did not stop within"):
        server.stop(timeout_s=0.2)
    assert all(gone(one) for one in processes)
    server.stop()


def test_a_socket_with_too_long_a_path_is_refused_before_the_start(bench: Bench, tmp_path: Path) -> None:
    with_processes(bench)
    bench.initialise()
    bench.runtime = tmp_path / ("r" * 120)
    bench.runtime.mkdir()
    with pytest.raises(UserError, match="107 are allowed"):
        bench.start()
    assert list(bench.runtime.iterdir()) == []
    bench.runtime = Path(tempfile.mkdtemp(prefix="dyno-test-"))


def test_no_server_listens_on_the_network(up: Bench) -> None:
    with_processes(up)
    # The first process listens for all of them; others come and go.
    assert psutil.Process(up.servers[0].process_ids[0]).net_connections(kind="inet") == []


def test_a_server_that_nobody_gave_a_key_looks_for_none(up: Bench) -> None:
    """Keys are primes that are found by chance, so starts would differ by what that took."""
    with_processes(up)
    keys = [path.name for path in up.data.rglob("*") if path.suffix in (".pem", ".key", ".crt")]
    assert keys == []
    if up.servers[0].url.startswith("mysql:"):
        ask = up.ask(up.servers[0])
        [[_, given]], [[_, valid_until]] = map(
            ask, (SHOWS_CERTIFICATE, "SHOW STATUS LIKE 'Ssl_server_not_after'")
        )
        assert given or not valid_until, "it has made one itself"


def test_a_launch_reaches_the_server_whose_death_is_noticed(bench: Bench) -> None:
    with_processes(bench)
    bench.initialise()
    cpu = min(os.sched_getaffinity(0))
    server = bench.start(launch=Launch({"DYNO_TEST": "here"}, wrapper=("env", "WRAPPED=1"), affinity=(cpu,)))
    process = psutil.Process(server.process_ids[0])
    assert process.cpu_affinity() == [cpu]
    environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    assert b"DYNO_TEST=here" in environment
    assert b"WRAPPED=1" in environment
    process.kill()
    assert ends(server)
    with pytest.raises(ServerFailed, match="SIGKILL"):
        server.stop()


KILLED = """
import sys, time
from pathlib import Path
from dbdyno.host.launch import Launch
from dbdyno.engines.registry import ENGINES
from dbdyno.study.nouns import Reference
name, version, data, runtime = sys.argv[1:]
engine = ENGINES[name]
installation = engine.obtaining.locate(Reference(name, version))
server = engine.life.start(installation, Path(data), Path(runtime), {}, Launch())
print(*server.process_ids, flush=True)
time.sleep(600)
"""


def test_a_server_dies_with_dyno(bench: Bench) -> None:
    with_processes(bench)
    bench.initialise()
    # By its version, because another worker may fetch a later one meanwhile.
    version = bench.installation.version
    arguments = [bench.engine.name, version, str(bench.data), str(bench.runtime)]
    dyno = subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert dyno.stdout is not None
    processes = [int(one) for one in dyno.stdout.readline().split()]
    assert processes
    dyno.send_signal(signal.SIGKILL)
    dyno.wait()
    dyno.stdout.close()
    assert all(gone(one) for one in processes)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 30 MB, where this machine lets us mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=30m", "dyno-test", str(folder)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_said_before_anything_is_made(bench: Bench, small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb") as ballast:
        ballast.write(bytes(25_000_000))
    with pytest.raises(DynoError, match="MiB free"):
        bench.engine.life.initialise(bench.installation, small_disk / "data", {})
    assert not (small_disk / "data").exists()


KNOWN_DEFAULTS = {
    "firebird": ("DeadlockTimeout", "10"),
    "mariadb": ("innodb_flush_log_at_trx_commit", "1"),
    "mysql": ("innodb_flush_log_at_trx_commit", "1"),
    "postgresql": ("shared_buffers", "16384 8kB"),
    "sqlite": ("THREADSAFE", "1"),
}
"""A setting of each engine with a default that no version changed."""

OFFERS = [offer for offer in registry.offers() if offer.engine in ENGINES]
"""Those of this machine: copies of other architectures are asked by the tests of platforms."""


def obtained(offer: Offer) -> Installation:
    """The engine of a line of `dyno engines`. Skips where the network does not give it."""
    obtaining = ENGINES[offer.engine].obtaining
    if offer.present:
        return obtaining.locate(Reference(offer.engine, offer.version))
    assert offer.command, offer.source
    try:
        return obtaining.fetch(offer.command.partition("@")[2], "", print)
    except DynoError as failed:
        if any(covers(offer.version, copy.version) for copy in debian.fetched(offer.engine)):
            raise
        pytest.skip(f"{offer.command} cannot be fetched here: {failed.message}")


@pytest.mark.parametrize("offer", OFFERS, ids=[f"{one.engine}@{one.version}" for one in OFFERS])
def test_every_version_that_is_listed_is_obtained_started_loaded_and_stopped(
    offer: Offer, tmp_path: Path, shelf: Path
) -> None:
    installation = obtained(offer)
    assert covers(offer.version, installation.version)
    with bench_for(offer.engine, tmp_path, shelf) as bench:
        bench.installation, bench.pristine = installation, tmp_path / "pristine"
        bench.initialise()
        server = bench.start()
        with LoadProcess(server.driver_environment, Launch()) as load:
            job = Job(url=server.url, workload="tpcb", operations=50)
            assert load.prepare(job).rows > 0
            tally = load.run(job)
            assert tally.operations == 50
            checks = load.check(job, Acknowledged.by([tally]))
        assert checks
        assert all(check.holds for check in checks)
        server.stop()


def test_every_engine_has_a_sample() -> None:
    assert set(ENGINES) <= set(SAMPLES)


def test_an_engine_answers_the_fixed_queries_of_the_gate(up: Bench) -> None:
    found = known_answers(up.ask(up.servers[0]), up.engine, up.installation.version)
    assert [check for check in found if not check.holds] == []


def test_fractions_are_added_in_double_precision(up: Bench) -> None:
    """A decimal would keep exactly what a double loses."""
    dual = f" FROM {up.engine.dual}" if up.engine.dual else ""
    one, tiny = (f"CAST({number} AS {up.engine.double})" for number in ("1", "0.00000000000000000001"))
    [[lost]] = up.ask(up.servers[0])(f"SELECT {one} + {tiny} - {one}{dual}")
    assert lost is not None and float(lost) == 0.0


@dataclass(frozen=True)
class Writing:
    """Statements that have a server write to `{path}`, and the settings with which it does so."""

    statements: tuple[str, ...]
    settings: Mapping[str, Level] = field(default_factory=dict)


OUTSIDE = {
    "mariadb": Writing(("SELECT 1 INTO OUTFILE '{path}'",)),
    "mysql": Writing(("SELECT 1 INTO OUTFILE '{path}'",), {"secure_file_priv": ""}),
    "postgresql": Writing(("COPY (SELECT 1) TO '{path}'",)),
    "sqlite": Writing(("VACUUM INTO '{path}'",)),
    "firebird": Writing(
        (
            "CREATE TABLE {path.name} EXTERNAL FILE '{path}' (a CHAR(1))",
            "INSERT INTO {path.name} VALUES ('1')",
        ),
        {"ExternalFileAccess": "Full"},
    ),
}


@pytest.mark.skipif(why_writable() != "", reason=f"this host refuses a read-only view: {why_writable()}")
def test_a_server_writes_nothing_outside_of_its_folders(bench: Bench, outside: Path) -> None:
    """Whatever its settings and statements say. In its own folder the same is written."""
    writing = OUTSIDE[bench.engine.name]
    bench.initialise()
    server = bench.start(writing.settings)
    how = Launch().confined_to(*server.driver_folders)

    def write(path: Path) -> None:
        with LoadProcess(server.driver_environment, how) as load:
            for statement in writing.statements:
                load.query(server.url, statement.format(path=path))

    write(bench.data / "here")
    assert (bench.data / "here").stat().st_size > 0
    with pytest.raises(DriverFailed):
        write(outside / "there")
    assert list(outside.iterdir()) == []
