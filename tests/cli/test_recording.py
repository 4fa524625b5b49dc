"""`dyno init replay`: a recording from a log, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid

LOG = """\
# Time: 2026-11-22T16:00:00.500000Z
# User@Host: root[root] @ localhost []  Id:     8
# Query_time: 0.001500  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 30
SELECT name FROM customer WHERE id = 7;
# Time: 2026-11-22T16:00:02.500000Z
# User@Host: root[root] @ localhost []  Id:     9
# Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0
KILL 8;
"""
POSTGRESQL = """\
2026-11-24 21:50:01.500 UTC [11] me@shop LOG:  duration: 0.250 ms  statement: SELECT 1
2026-11-24 21:50:02.500 UTC [12] me@crm LOG:  duration: 0.250 ms  statement: SELECT 2
2026-11-24 21:50:03.500 UTC [13] LOG:  checkpoint starting: time
2026-11-24 21:50:03.500 UTC [13] LOG:  checkpoint complete
"""


def test_a_log_becomes_a_recording_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    log, output = tmp_path / "slow.log", tmp_path / "shop.replay"
    log.write_text(LOG, encoding="utf-8")
    said = dyno("init", "replay", "--from", str(log), "-o", str(output))
    assert said.returncode == 0, said.stderr
    assert "1 statement of 1 session" in said.stdout
    assert "left out: 1 that end a connection or the server" in said.stdout
    assert f"dyno load run replay --file {output}" in said.stdout
    assert "is there already" in complaint("init", "replay", "--from", str(log), "-o", str(output))


def test_json_is_as_its_schema_says(tmp_path: Path) -> None:
    log, output = tmp_path / "slow.log", tmp_path / "shop.replay"
    log.write_text(LOG, encoding="utf-8")
    said = dyno("init", "replay", "--from", str(log), "-o", str(output), "--json")
    require_valid("init-replay", said.stdout)
    told = json.loads(said.stdout)
    assert (told["output"], told["count"], told["kinds"]) == (str(output), 1, ["select"])


def test_of_several_databases_of_postgresql_one_is_named(tmp_path: Path) -> None:
    log, output = tmp_path / "postgresql.log", tmp_path / "shop.replay"
    log.write_text(POSTGRESQL, encoding="utf-8")
    command = ("init", "replay", "--from", str(log), "-o", str(output))
    assert "--database shop" in complaint(*command)
    assert not output.exists()
    said = dyno(*command, "--database", "crm")
    assert "1 statement of 1 session" in said.stdout, said.stderr


def test_mistakes_of_a_replay_name_the_remedy(tmp_path: Path) -> None:
    url = ("--url", "mysql://root@localhost/test")
    assert "dyno init replay" in complaint("load", "run", "replay", *url)
    assert "dyno init replay" in complaint("load", "run", "replay", *url, "--file", str(tmp_path / "x"))
    log = tmp_path / "slow.log"
    log.write_text(LOG, encoding="utf-8")
    assert "is no recording" in complaint("load", "run", "replay", *url, "--file", str(log))
    assert "leave out --clients" in complaint("load", "run", "replay", *url, "--clients", "3")
