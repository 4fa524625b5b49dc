"""A MariaDB and a MySQL that run already are studied, and have afterwards what they had."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dbdyno.engines.mariadb.running import least_right
from dbdyno.errors import EngineMissing
from tests.cli.calls import complaint, dyno
from tests.running_server import TUNER, UsersServer, users_server
from tests.warm import Process

STUDY = """
engine = "{url}"
blocks = 1
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
BY_GLOBAL = '"config.innodb_io_capacity" = [200, 2000]'
BY_SESSION = '"config.sort_buffer_size" = ["256K", "4M"]'
AT_START = '"config.innodb_log_buffer_size" = ["16M", "32M"]'
SELECTS = 'name = "point_select"\ntable_size = 1000'
READS = 'name = "script"\nfile = "script.toml"'
SCRIPT = '[[transactions]]\nname = "one"\nstatements = ["{sql}"]\n'
ALONG = {
    "mariadb": ("innodb_io_capacity", [300, 100000], "innodb_io_capacity_max"),
    "mysql": ("innodb_max_dirty_pages_pct", [60, 5], "innodb_max_dirty_pages_pct_lwm"),
}
RIGHT = {"mariadb": "SUPER", "mysql": "SYSTEM_VARIABLES_ADMIN"}


@pytest.fixture(scope="module", params=["mariadb@11.8", "mysql@9"])
def server(request: pytest.FixtureRequest) -> Iterator[UsersServer]:
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        try:
            with users_server(request.param, Path(folder)) as found:
                found.tell(
                    f"CREATE USER {TUNER}@localhost",
                    f"GRANT ALL ON `dyno\\_%`.* TO {TUNER}@localhost",
                    f"GRANT SELECT, INSERT ON dyno.* TO {TUNER}@localhost",
                    f"GRANT {RIGHT[found.installation.engine]} ON *.* TO {TUNER}@localhost",
                    "CREATE TABLE item (id INT PRIMARY KEY)",
                    "INSERT INTO item VALUES (1), (2), (3)",
                )
                yield found
        except EngineMissing as missing:
            pytest.skip(f"{request.param} is not here: {missing.message}")


@pytest.fixture
def study(homes: Path, server: UsersServer) -> Iterator[Path]:
    """Where a study is written. What a test leaves on the server is noticed by the next."""
    server.tell("SET GLOBAL innodb_io_capacity = 300")
    yield homes / "study.toml"
    assert in_force(server) == "300"
    assert databases(server) == []


def write(study: Path, url: str, factors: str, workload: str = SELECTS, server: str = "") -> str:
    study.write_text(STUDY.format(url=url, server=server, workload=workload, factors=factors))
    return str(study)


def in_force(server: UsersServer) -> str:
    return str(server.tell("SHOW GLOBAL VARIABLES LIKE 'innodb_io_capacity'")[0][1])


def databases(server: UsersServer) -> list[str]:
    return [str(row[0]) for row in server.tell("SHOW DATABASES LIKE 'dyno\\_%'")]


def test_levels_are_put_in_and_what_stood_is_put_back(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, "\n".join((BY_GLOBAL, BY_SESSION)))
    told = " ".join(dyno("plan", path).stdout.split())
    assert f"innodb_io_capacity (now 300): SET GLOBAL; needs the right to set it, which '{TUNER}'" in told
    assert f"SET SESSION in each of its sessions; needs the right to set it, which '{TUNER}'" in told
    done = dyno("run", path, "--allow-server", server.url, "--name", "moved")
    assert done.returncode == 0, done.stderr
    found = json.loads(dyno("report", "moved", "--json").stdout)["run"]["in_use"]
    assert [(one["before"], one["after"]) for one in found["moved"]] == [("300", "300")]
    assert found["here"]
    levels = dict[str, dict[str, str]]()
    for number in range(3):
        record = json.loads(dyno("report", "moved", str(number), "--json").stdout)
        levels[record["variant"]] = {one["factor"]: one["effective"]["value"] for one in record["evidence"]}
    assert levels == {
        "baseline": {"config.innodb_io_capacity": "200", "config.sort_buffer_size": "262144"},
        "config.innodb_io_capacity=2000": {
            "config.innodb_io_capacity": "2000",
            "config.sort_buffer_size": "262144",
        },
        "config.sort_buffer_size=4M": {
            "config.innodb_io_capacity": "200",
            "config.sort_buffer_size": "4194304",
        },
    }


OF_ITS_OWN = {
    "mariadb": ('"config.max_connections" = [100, 200]', "CONNECTION ADMIN"),
    "mysql": ('"config.offline_mode" = [true, false]', "CONNECTION_ADMIN"),
}
"""A setting of the server that takes a right of its own, beside or in place of the one for most."""
OF_SESSIONS = {
    "mariadb": ('"config.binlog_format" = ["ROW", "MIXED"]', "BINLOG ADMIN"),
    "mysql": ('"config.bulk_insert_buffer_size" = [0, "8M"]', "SESSION_VARIABLES_ADMIN"),
}
"""One that sessions do not set for themselves without a right."""


@contextmanager
def moved(server: UsersServer, deed: str, back: str, right: str) -> Iterator[None]:
    """The account has a right, or lacks it, while this lasts."""
    server.tell(deed.format(right=right, account=ACCOUNT))
    try:
        yield
    finally:
        server.tell(back.format(right=right, account=ACCOUNT))


ACCOUNT = f"'{TUNER}'@'localhost'"
GRANT, REVOKE = "GRANT {right} ON *.* TO {account}", "REVOKE {right} ON *.* FROM {account}"


@pytest.mark.parametrize("scope", ["GLOBAL", "SESSION"])
def test_the_server_says_which_right_a_setting_takes_and_nothing_is_set(
    study: Path, server: UsersServer, scope: str
) -> None:
    engine, of_server = server.installation.engine, scope == "GLOBAL"
    factor, right = (OF_ITS_OWN if of_server else OF_SESSIONS)[engine]
    path = write(study, server.url, "\n".join((BY_GLOBAL if of_server else BY_SESSION, factor)))
    everything = "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE '%gtid%'"
    before = server.tell(everything)
    with ExitStack() as held:
        if not of_server:
            held.enter_context(moved(server, REVOKE, GRANT, RIGHT[engine]))
        refused = complaint("plan", path)
        with moved(server, GRANT, REVOKE, right):
            told = " ".join(dyno("plan", path).stdout.split())
    assert f"{ACCOUNT} may not SET {scope}" in refused
    assert f"{right} ON *.* TO {ACCOUNT}" in refused
    assert told.count("needs the right to set it, which") == 2
    assert server.tell(everything) == before


def test_what_no_session_has_of_its_own_is_not_moved(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, '"config.max_allowed_packet" = ["1M", "32M"]')
    told = complaint("plan", path)
    assert "no session sets max_allowed_packet for itself" in told
    assert "study it on a server of Dyno's own" in told


@pytest.mark.parametrize(
    ("told", "right"),
    [
        ("SUPER", "SUPER"),
        ("BINLOG ADMIN", "BINLOG ADMIN"),
        ("SUPER, REPLICATION SLAVE ADMIN", "REPLICATION SLAVE ADMIN"),
        ("SUPER or SYSTEM_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN"),
        (
            "SUPER or SYSTEM_VARIABLES_ADMIN and TABLE_ENCRYPTION_ADMIN",
            "SYSTEM_VARIABLES_ADMIN, TABLE_ENCRYPTION_ADMIN",
        ),
        (
            "SYSTEM_VARIABLES_ADMIN plus CONNECTION_ADMIN or SUPER",
            "SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN",
        ),
    ],
)
def test_of_several_rights_the_one_that_gives_least_is_named(told: str, right: str) -> None:
    assert least_right(told) == right


def test_what_moves_along_is_told_and_put_back(study: Path, server: UsersServer) -> None:
    name, levels, along = ALONG[server.installation.engine]
    before = server.tell("SHOW GLOBAL VARIABLES LIKE 'innodb\\_%'")
    paced = f"{SELECTS}\nrate_per_s = 50"
    path = write(study, server.url, f'"config.{name}" = {levels}', paced)
    done = dyno("run", path, "--allow-server", server.url, "--name", "along")
    assert done.returncode == 0, done.stderr
    assert server.tell("SHOW GLOBAL VARIABLES LIKE 'innodb\\_%'") == before
    found = json.loads(dyno("report", "along", "--json").stdout)["run"]["in_use"]["moved"]
    told = [(one["name"], one["does"]) for one in found]
    assert told == [(name, "SET GLOBAL"), (along, f"moved along with {name}")]


def test_a_dyno_that_was_killed_is_put_back_by_the_next_one(study: Path, server: UsersServer) -> None:
    # This test looks at the server over and over, so somebody else is connected.
    path = write(study, server.url, BY_GLOBAL, f"{SELECTS}\nrate_per_s = 50")
    running = Process("run", path, "--allow-server", server.url, "--quiet")
    deadline = time.monotonic() + 60
    while in_force(server) == "300" and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert in_force(server) in ("200", "2000")
    assert "dyno_ledger" in databases(server)
    done = dyno("cleanup")
    assert (done.returncode, "server setting innodb_io_capacity 300" in done.stdout) == (0, True), done.stderr


def test_the_server_itself_refuses_a_write_to_the_users_tables(study: Path, server: UsersServer) -> None:
    path = write(study, server.url, BY_SESSION, READS, 'data = "mine"')
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="INSERT INTO item VALUES (7)"))
    done = dyno("run", path, "--allow-server", server.url)
    assert done.returncode == 3
    assert "READ ONLY transaction" in " ".join((done.stdout + done.stderr).split())
    assert len(server.tell("SELECT id FROM item")) == 3


def test_a_guard_needs_the_right_to_see_others(study: Path, server: UsersServer) -> None:
    guarded = 'data = "mine"\nguard_p99 = "500ms"'
    path = write(study, server.url, BY_SESSION, f"{READS}\nrate_per_s = 50", guarded)
    (study.parent / "script.toml").write_text(SCRIPT.format(sql="SELECT count(*) FROM item"))
    told = complaint("plan", path)
    assert "the baseline cannot be put into effect here" in told and "which is guarded" in told
    refused = complaint("run", path, "--allow-server", server.url)
    for said in (told, refused):
        assert f"to '{TUNER}'@'localhost'" in said.replace("TO", "to")
