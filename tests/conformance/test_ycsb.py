"""YCSB's core workloads load, run and keep their rows on every engine."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job, Open
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.engines.server import ServerProcess
from tests.conformance.commands import loads
from tests.conformance.conftest import WAITS_FOR_NO_DISK, Bench, started

SIZE = ("--record-count", "300", "--field-length", "20")
SHORT = ("--warmup", "0", "--time", "120", "--operations", "60", "--clients", "2", "--json")


def test_each_of_ycsbs_workloads_runs_and_keeps_its_rows(bench: Bench) -> None:
    bench.initialise()
    server = bench.start(WAITS_FOR_NO_DISK.get(bench.engine.name))
    # What one run inserts, the next one reads, and neither inserts a key twice.
    first, last = [f"ycsb_{letter}" for letter in "abcf"], [f"ycsb_{letter}" for letter in "dedd"]
    _, *of_first, checked, _ = loads(
        server,
        ("prepare", "ycsb_a", *SIZE),
        *(("run", workload, *SIZE, *SHORT) for workload in first),
        ("check", "ycsb_f", *SIZE, "--json"),
        ("cleanup", "ycsb_f", *SIZE),
    )
    assert [(one["name"], one["holds"]) for one in json.loads(checked)] == [("rows_complete", True)]
    _, *of_last, _ = loads(
        server,
        ("prepare", "ycsb_d", *SIZE),
        *(("run", workload, *SIZE, *SHORT) for workload in last),
        ("cleanup", "ycsb_d", *SIZE),
    )
    for workload, said in zip([*first, *last], [*of_first, *of_last], strict=True):
        tally = json.loads(said)
        assert (tally["operations"], tally["errors"]) == (60, {}), workload


RECORDS, HELD = 300, 310
"""How many rows are loaded, and the number of the key whose insert waits in the server."""
BEHIND = 30
"""How many keys others insert while that one is missing."""
DEADLINE_S = 60.0
HOLDS = {
    "mariadb": (
        "SET GLOBAL default_week_format = 7",
        "CREATE TRIGGER waits BEFORE INSERT ON usertable FOR EACH ROW"
        " IF NEW.ycsb_key = '{key}' AND @@GLOBAL.default_week_format = 7"
        " THEN SET @waited = SLEEP(600); END IF",
    ),
    "postgresql": (
        "CREATE TABLE holds (held INT)",
        "INSERT INTO holds VALUES (1)",
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF (SELECT held FROM holds) = 1 THEN PERFORM pg_sleep(600); END IF; RETURN NEW; END $$",
        "CREATE TRIGGER waits BEFORE INSERT ON usertable FOR EACH ROW WHEN (NEW.ycsb_key = '{key}')"
        " EXECUTE FUNCTION wait()",
    ),
}
"""What makes one insert wait in the server. MariaDB's trigger asks a setting, because it would lock a row."""
FREES = {"mariadb": "SET GLOBAL default_week_format = 0", "postgresql": "UPDATE holds SET held = 0"}
WAITING = {
    "mariadb": "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'",
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
}
KILLED = {"mariadb": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}
LOGGED = {
    "mariadb": {"general_log": "ON", "general_log_file": "{folder}/statements.log"},
    "postgresql": {"log_statement": "all"},
}

READ = {
    "mariadb": r"SELECT [^\n]*ycsb_key = '(user\d+)'",
    "postgresql": r"SELECT [^\n]*ycsb_key = \$1\n[^\n]*DETAIL: [^\n]*\$1 = '(user\d+)'",
}
"""What a log says of a read, with its key."""


def key(number: int) -> str:
    """The key of a number as YCSB makes it: FNV-1a of its bytes, without the sign."""
    state = 0xCBF29CE484222325
    for byte in number.to_bytes(8, "little"):
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return f"user{state if state < 2**63 else 2**64 - state}"


Logged = tuple[str, ServerProcess, Path]


@pytest.fixture(params=sorted(HOLDS))
def logged(request: pytest.FixtureRequest, tmp_path: Path, shelf: Path) -> Iterator[Logged]:
    """An engine's name, its server, and the file where that logs each statement with its values."""
    engine = str(request.param)
    settings = {name: value.format(folder=tmp_path) for name, value in LOGGED[engine].items()}
    with started(engine, settings, tmp_path, shelf) as server:
        assert isinstance(server, ServerProcess)
        log = settings.get("general_log_file")
        yield engine, server, Path(log) if log else server.log_path


def asked(server: ServerProcess, sql: str) -> list[list[Any]]:
    return list(json.loads(_driver.query(server.url, sql))["rows"])


def until(server: ServerProcess, sql: str) -> str:
    """The first value that a question has, asked until there is one that is not 0."""
    deadline = time.monotonic() + DEADLINE_S
    while not (rows := asked(server, sql)) or not rows[0][0]:
        assert time.monotonic() < deadline, sql
        time.sleep(0.05)
    return str(rows[0][0])


def test_a_key_whose_insert_is_lost_is_inserted_by_another_and_the_latest_go_on(logged: Logged) -> None:
    engine, server, log = logged
    job = Job(
        url=server.url,
        workload="ycsb_d",
        options={"record_count": RECORDS, "field_length": 10},
        clients=4,
        reconnect=True,
        duration_s=6.0,
        load=Open(rate_per_s=800.0),
    )
    _driver.prepare(job.model_dump_json())
    for sql in HOLDS[engine]:
        asked(server, sql.format(key=key(HELD)))
    told: list[Tally] = []
    load = threading.Thread(
        target=lambda: told.append(Tally.model_validate_json(_driver.run(job.model_dump_json())))
    )
    load.start()
    waiting = until(server, WAITING[engine])
    until(server, f"SELECT COUNT(*) FROM usertable HAVING COUNT(*) >= {HELD + BEHIND}")
    assert asked(server, f"SELECT COUNT(*) FROM usertable WHERE ycsb_key = '{key(HELD)}'") == [[0]]
    asked(server, FREES[engine])
    asked(server, KILLED[engine].format(waiting))
    until(server, f"SELECT COUNT(*) FROM usertable WHERE ycsb_key = '{key(HELD)}'")
    before = log.stat().st_size
    load.join()
    [tally] = told
    assert tally.unknown == 1 and sum(tally.errors.values()) >= 1
    checks = _driver.check(job.model_dump_json(), Acknowledged.by([tally]).model_dump_json())
    assert [(one["name"], one["holds"]) for one in json.loads(checks)] == [("inserts_there", True)]
    there = {row[0] for row in asked(server, "SELECT ycsb_key FROM usertable")}
    assert there == {key(number) for number in range(len(there))}
    later = {key(number) for number in range(HELD + 2 * BEHIND, len(there))}
    with log.open("rb") as lines:
        lines.seek(before)
        statements = lines.read().decode(errors="replace")
    read = set(re.findall(READ[engine], statements))
    assert read & later, "nobody has read a key that came after the lost one"
