"""A PostgreSQL that runs already is studied, and has afterwards what it had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from dbdyno.engines import put_back
from dbdyno.engines.put_back import SettingBefore
from dbdyno.engines.runtime import TABLE
from dbdyno.errors import DynoError, EngineMissing
from dbdyno.host.journal import open_journal
from dbdyno.records.in_use import ServerId
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests import warm
from tests.cli.calls import complaint, dyno
from tests.running_server import TUNER, Address, UsersServer, replica, users_server
from tests.warm import Process

STUDY = """
title = "Checkpoints"
engine = "{url}"
blocks = 1
{top}
[server]
{server}
[workload]
{workload}
clients = 1
warmup = "0.1s"
duration = "0.8s"
plans = false
[factors]
{factors}
"""
TPCB = 'name = "tpcb"'
SELECTS = 'name = "point_select"\ntable_size = 1000'
READS = 'name = "script"\nfile = "script.toml"'
BY_RELOAD = '"config.checkpoint_timeout" = ["5min", "10min"]'
BY_SESSION = '"config.work_mem" = ["4MB", "64MB"]'
BY_RESTART = '"config.max_locks_per_transaction" = [64, 128]'
SECRET = "nobody-writes-this-down"
SCRIPT = '[[transactions]]\nname = "one"\nstatements = ["{sql}"]\n'


MADE = (
    f"CREATE ROLE {TUNER} LOGIN",
    f"GRANT CREATE ON DATABASE dyno TO {TUNER}",
    "CREATE TABLE item AS SELECT i AS id FROM generate_series(1, 1000) i",
    f"GRANT SELECT, INSERT ON item TO {TUNER}",
    f"GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {TUNER}",
    f"GRANT ALTER SYSTEM ON PARAMETER checkpoint_timeout TO {TUNER}",
    f"GRANT ALTER SYSTEM ON PARAMETER max_locks_per_transaction TO {TUNER}",
    f"GRANT pg_read_all_stats TO {TUNER}",
    f"GRANT SELECT ON pg_file_settings TO {TUNER}",
    f"GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO {TUNER}",
)


@pytest.fixture(scope="module")
def server() -> Iterator[UsersServer]:
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        try:
            with users_server("postgresql@15", Path(folder)) as found:
                found.tell(*MADE)
                yield found
        except EngineMissing as missing:
            pytest.skip(f"postgresql is not here: {missing.message}")


@pytest.fixture
def study(homes: Path, server: UsersServer) -> Iterator[Path]:
    """Where a study is written. What a test leaves on the server is noticed by the next."""
    server.tell(
        "ALTER SYSTEM RESET ALL", "ALTER SYSTEM SET checkpoint_timeout = '7min'", "SELECT pg_reload_conf()"
    )
    yield homes / "study.toml"
    assert standing(server) == "7min"
    assert schemas(server) == []


@pytest.fixture
def killed(study: Path, server: UsersServer) -> None:
    """A Dyno was killed while it had the server at a level of its own."""
    path = write(study, server.url, BY_RELOAD)
    running = Process("run", path, "--allow-server", server.url, "--quiet")
    deadline = time.monotonic() + 60
    while standing(server) == "7min" and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert standing(server) in ("5min", "10min")
    assert "dyno_ledger" in schemas(server)


@pytest.fixture
def standby(server: UsersServer) -> Iterator[str]:
    """The URL of a standby that was copied from the server, for the same account."""
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder, replica(server, Path(folder)) as found:
        yield found.url


@pytest.fixture
def other() -> Iterator[UsersServer]:
    """Another server, for the same account, which is to keep 8min."""
    with (
        tempfile.TemporaryDirectory(prefix="dyno-") as folder,
        users_server("postgresql@15", Path(folder)) as found,
    ):
        found.tell(*MADE, "ALTER SYSTEM SET checkpoint_timeout = '8min'", "SELECT pg_reload_conf()")
        yield found


@pytest.fixture
def address(server: UsersServer) -> Iterator[Address]:
    """A port that leads to the server."""
    with closing(Address(socket_of(server))) as found:
        yield found


def socket_of(server: UsersServer) -> Path:
    return next((server.folder / "r").glob(".s.PGSQL.*[0-9]"))


def begun(path: str, url: str, server: UsersServer) -> Process:
    """A run that has moved the setting, and goes on."""
    command = ("run", path, "--allow-server", url, "--quiet")
    running = Process(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while standing(server) == "7min" and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def write(study: Path, url: str, factors: str, workload: str = TPCB, server: str = "", top: str = "") -> str:
    study.write_text(STUDY.format(url=url, top=top, server=server, workload=workload, factors=factors))
    return str(study)


def standing(server: UsersServer) -> str:
    rows = server.tell("SELECT setting FROM pg_file_settings WHERE name = 'checkpoint_timeout'")
    return str(rows[-1][0])


def in_force(server: UsersServer, name: str) -> str:
    return str(server.tell(f"SELECT current_setting('{name}')")[0][0])


def schemas(server: UsersServer) -> list[str]:
    return [str(row[0]) for row in server.tell("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'dyno%'")]


def test_a_plan_tells_what_would_be_done_and_a_run_needs_leave(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, "\n".join((BY_RELOAD, BY_SESSION, BY_RESTART)))
    told = " ".join(dyno("plan", path).stdout.split())
    assert "checkpoint_timeout (now 7min): ALTER SYSTEM and a reload; needs ALTER SYSTEM on the" in told
    assert f"parameter checkpoint_timeout, which {TUNER} has" in told
    assert "work_mem (now 4MB): SET in each of its sessions; needs no right" in told
    assert "max_locks_per_transaction (now 64): blocked, because" in told
    assert "blocked, variant 3: max_locks_per_transaction is read when the server starts" in told
    planned = json.loads(dyno("plan", path, "--json").stdout)
    assert [way["means"] for way in planned["in_use"]["ways"]] == ["server", "restart", "session"]
    refused = complaint("run", path)
    assert "moves checkpoint_timeout" in refused
    assert f"--allow-server '{server.url}'" in refused
    other = server.url.replace("localhost", "127.0.0.1")
    assert "moves checkpoint_timeout" in complaint("run", path, "--allow-server", other)
    for command in (
        ("soak", path),
        ("calibrate", path),
        ("bisect", path, "--settings"),
        ("run", path, "--against", path),
    ):
        assert "starts its own" in complaint(*command, *(["--allow-server", server.url] * ("run" in command)))
    assert "holds a password" in complaint("run", path, "--allow-server", "postgresql://a:b@localhost/x")


def test_levels_are_put_in_and_what_stood_is_put_back(
    study: Path, server: UsersServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    path = write(study, server.url, "\n".join((BY_RELOAD, BY_SESSION)))
    done = dyno("run", path, "--allow-server", server.url, "--name", "moved")
    assert done.returncode == 0, done.stderr
    assert "and read again: checkpoint_timeout" in " ".join(done.stdout.split())
    details = dyno("report", "moved", "--details").stdout
    assert "7min, put back and read" in " ".join(details.split())
    found = json.loads(dyno("report", "moved", "--json").stdout)
    assert found["run"]["arrangement"] == "side-by-side"
    assert found["run"]["in_use"]["here"]
    [moved] = found["run"]["in_use"]["moved"]
    assert (moved["line"], moved["before"], moved["after"]) == ("7min", "7min", "7min")
    written = [one for one in study.parent.rglob("*") if one.is_file()]
    assert [one for one in written if SECRET.encode() in one.read_bytes()] == []
    levels = dict[str, dict[str, str]]()
    for number in range(3):
        record = json.loads(dyno("report", "moved", str(number), "--json").stdout)
        assert (record["outcome"], record["reset"]["way"]) == ("measured", "own schema")
        levels[record["variant"]] = {one["factor"]: one["effective"]["value"] for one in record["evidence"]}
    assert levels == {
        "baseline": {"config.checkpoint_timeout": "5min", "config.work_mem": "4MB"},
        "config.checkpoint_timeout=10min": {"config.checkpoint_timeout": "10min", "config.work_mem": "4MB"},
        "config.work_mem=64MB": {"config.checkpoint_timeout": "5min", "config.work_mem": "64MB"},
    }


@pytest.mark.usefixtures("killed")
def test_a_dyno_that_was_killed_leaves_what_another_machine_puts_back(
    server: UsersServer, tmp_path: Path
) -> None:
    other = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "DATA", "STATE")}
    elsewhere = {**os.environ, **other, "DYNO_HOST_FOLDER": str(tmp_path / "other")}
    cleanup = ("cleanup", "--server", server.url)
    refused = warm.run(*cleanup, env=elsewhere)
    assert (refused.returncode, "may live" in refused.stderr) == (2, True), refused.stderr
    server.tell(f"UPDATE {TABLE} SET beat = beat - 100")
    done = warm.run(*cleanup, env=elsewhere)
    assert (done.returncode, "server setting checkpoint_timeout 7min" in done.stdout) == (0, True), (
        done.stderr
    )
    assert (standing(server), in_force(server, "checkpoint_timeout"), schemas(server)) == ("7min", "7min", [])
    # This host has a journal still, which finds nothing to put back.
    server.tell("ALTER SYSTEM SET checkpoint_timeout = '9min'", "SELECT pg_reload_conf()")
    assert dyno("cleanup").returncode == 0
    assert standing(server) == "9min"
    server.tell("ALTER SYSTEM SET checkpoint_timeout = '7min'", "SELECT pg_reload_conf()")


@pytest.mark.usefixtures("killed")
def test_a_dyno_that_was_killed_is_put_back_by_the_next_one(server: UsersServer) -> None:
    done = dyno("cleanup")
    assert done.returncode == 0, done.stderr
    assert f"server setting checkpoint_timeout 7min, set as 7min of {server.url}" in done.stdout


def test_another_server_at_the_address_is_not_touched(
    study: Path, server: UsersServer, other: UsersServer, address: Address
) -> None:
    url = f"postgresql://{TUNER}@127.0.0.1:{address.port}/dyno"
    running = begun(write(study, url, BY_RELOAD), url, server)
    address.lead(socket_of(other))
    _, complaints = running.communicate(timeout=100)
    assert (running.returncode, "another server answers" in complaints) == (1, True), complaints
    assert standing(server) in ("5min", "10min")
    refused = complaint("cleanup", code=1)
    assert "another server answers" in refused
    for each in (server, other):
        [[system]] = each.tell("SELECT system_identifier::text FROM pg_control_system()")
        assert str(system) in refused
    assert (standing(other), schemas(other)) == ("8min", [])
    address.lead(socket_of(server))
    # The next run has no word for that server.
    told = dyno("run", write(study, server.url, BY_SESSION)).stderr
    assert "to put them back: dyno cleanup" in told
    assert standing(server) in ("5min", "10min")
    assert "server setting checkpoint_timeout" in dyno("cleanup").stdout
    assert standing(server) == "7min"


def test_a_setting_that_others_change_in_the_midst_is_theirs(study: Path, server: UsersServer) -> None:
    running = begun(write(study, server.url, f"{BY_RELOAD}\n{BY_SESSION}"), server.url, server)
    server.tell("ALTER SYSTEM SET checkpoint_timeout = '11min'", "SELECT pg_reload_conf()")
    _, complaints = running.communicate(timeout=100)
    assert running.returncode == 1, complaints
    assert "checkpoint_timeout is 11min now, and Dyno had left" in complaints
    assert standing(server) == "11min"
    server.tell("ALTER SYSTEM SET checkpoint_timeout = '7min'", "SELECT pg_reload_conf()")


def test_a_replica_is_recognised_and_only_read(study: Path, server: UsersServer, standby: str) -> None:
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="SELECT count(*) FROM item"))
    path = write(study, standby, BY_SESSION, READS, 'data = "mine"')
    assert "it is a replica: a standby" in " ".join(dyno("plan", path).stdout.split())
    done = dyno("run", path, "--allow-server", standby)
    assert done.returncode == 0, done.stderr
    assert "It was only read." in " ".join(done.stdout.split())
    owned = complaint("run", write(study, standby, BY_SESSION), "--allow-server", standby)
    assert "the server is a replica" in owned


def test_the_server_itself_refuses_a_write_to_the_users_tables(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, BY_SESSION, READS, 'data = "mine"')
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="INSERT INTO item VALUES (7)"))
    rows = server.tell("SELECT count(*) FROM item")
    done = dyno("run", path, "--allow-server", server.url)
    assert done.returncode == 3
    assert "read-only transaction" in " ".join((done.stdout + done.stderr).split())
    assert server.tell("SELECT count(*) FROM item") == rows
    owned = complaint("run", write(study, server.url, BY_SESSION, READS), "--allow-server", server.url)
    assert "--allow-writes" in owned


def test_with_the_users_word_statements_write_and_nothing_else_does(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, BY_RELOAD, READS, 'data = "mine"')
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="INSERT INTO item VALUES (7777)"))

    def rest() -> list[object]:
        of_server = "SELECT name, setting FROM pg_settings ORDER BY 1"
        of_others = "SELECT count(*) FROM item WHERE id <> 7777"
        relations = "SELECT oid::int FROM pg_class WHERE relnamespace <> 'pg_toast'::regnamespace ORDER BY 1"
        return [server.tell(sql) for sql in (of_server, of_others, relations)]

    before = rest()
    done = dyno("run", path, "--allow-server", server.url, "--allow-writes", "--name", "wrote")
    assert done.returncode == 0, done.stderr
    with Store(store_url(None)) as store:
        tallies = [record.tally for record in store.records(store.key("wrote"))]
    [[written]] = server.tell("SELECT count(*) FROM item WHERE id = 7777")
    assert float(str(written)) == sum(tally.acknowledged for tally in tallies if tally is not None) > 0
    assert rest() == before
    server.tell("DELETE FROM item WHERE id = 7777")


def test_a_load_without_a_rate_is_refused_where_others_work(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, BY_SESSION, READS, 'data = "mine"')
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="SELECT count(*) FROM item"))
    with server.busy_with("SELECT pg_sleep(2)"):
        refused = complaint("run", path, "--allow-server", server.url)
        assert "1 other session" in refused
        assert "rate_per_s" in refused


def test_the_guard_stops_the_run_and_puts_back(study: Path, server: UsersServer) -> None:
    bounds = 'data = "mine"\nguard_p99 = "500ms"'
    path = write(study, server.url, BY_RELOAD, f"{READS}\nrate_per_s = 50", bounds)
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="SELECT count(*) FROM item"))
    with server.busy_with("SELECT pg_sleep(3)"):
        done = dyno("run", path, "--allow-server", server.url, "--name", "stopped")
        assert done.returncode == 1
        assert "the guard of the server's own load stopped the run" in done.stderr
        assert "go on with: dyno run --resume" in done.stderr
        assert in_force(server, "checkpoint_timeout") == "7min"
    with Store(store_url(None)) as store:
        found = store.run("stopped").in_use
    assert found is not None and found.seen is not None
    assert found.seen.p99_s > 0.5
    assert "are allowed" in found.seen.stopped
    assert [one.after for one in found.moved] == ["7min"]
    resumed = dyno("run", "--resume", "stopped", "--allow-server", server.url)
    assert resumed.returncode == 0, resumed.stderr
    assert "allow-server" in complaint("run", "--resume", "stopped")


def test_what_others_have_not_had_taken_over_keeps_a_run_from_beginning(
    study: Path, server: UsersServer
) -> None:
    path = write(study, server.url, BY_RELOAD)
    server.tell("ALTER SYSTEM SET deadlock_timeout = '2s'")
    assert "others have changed deadlock_timeout" in complaint("run", path, "--allow-server", server.url)
    assert in_force(server, "deadlock_timeout") == "1s"


def test_a_server_that_is_gone_can_be_given_up(study: Path, server: UsersServer) -> None:
    gone = f"{server.url}.gone"
    with ExitStack() as stack:
        journal = stack.enter_context(open_journal())
        nobody = ServerId(facts={})
        standing = SettingBefore(server=nobody, name="jit", does="", line=None, before="on", levels=("off",))
        put_back.note_settings(journal, gone, (standing,))
        with pytest.raises(DynoError, match=r"dyno cleanup \(--forget"):
            stack.close()
    assert "--forget" in complaint("cleanup", code=1)
    assert f"given up: server setting jit on of {gone}" in dyno("cleanup", "--forget", gone).stdout
    assert dyno("cleanup").stderr == "nothing was left behind\n"


def test_a_level_that_needs_a_restart_has_the_users_command(
    study: Path, server: UsersServer, tmp_path: Path
) -> None:
    without = write(study, server.url, BY_RESTART, SELECTS)
    blocked = dyno("run", without, "--allow-server", server.url).stderr
    assert "blocked: max_locks_per_transaction is read when the server starts" in blocked
    with server.restarted_by(tmp_path / "restart") as command:
        path = write(study, server.url, BY_RESTART, SELECTS, server=f"restart = {json.dumps(command)}")
        done = dyno("run", path, "--allow-server", server.url, "--name", "restarted")
        assert done.returncode == 0, done.stderr
    assert in_force(server, "max_locks_per_transaction") == "64"
    found = json.loads(dyno("report", "restarted", "--json").stdout)["run"]["in_use"]["moved"]
    assert [(one["name"], one["line"], one["after"]) for one in found] == [
        ("max_locks_per_transaction", None, "64")
    ]


def test_levels_that_give_something_up_need_the_studys_word(study: Path, server: UsersServer) -> None:
    factor = '"config.synchronous_commit" = ["on", "off"]'
    refused = complaint("plan", write(study, server.url, factor))
    assert "gives up durability" in refused
    assert 'allow = ["durability"]' in refused
    allowed = dyno("plan", write(study, server.url, factor, server='allow = ["durability"]'))
    assert allowed.returncode == 0, allowed.stderr
