"""Scripts of a user's own on real servers that have them in each other's way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.frozen import Level
from tests.conformance.conftest import started

SCRIPT = """
[setup]
statements = [
  "CREATE TABLE told (n INTEGER)",
  "CREATE TABLE kept (id INTEGER NOT NULL PRIMARY KEY, n INTEGER)",
  "INSERT INTO kept VALUES (1, 0), (2, 0)",
]

[[transactions]]
name       = "both"
atomic     = false
values     = { first = "uniform(1, 2)" }
statements = [
  "INSERT INTO told VALUES (1)",
  "BEGIN",
  "UPDATE kept SET n = n + 1 WHERE id = :first",
  { sleep = "1ms" },
  "UPDATE kept SET n = n + 1 WHERE id = 3 - :first",
  "COMMIT",
]

[[invariants]]
name   = "each_told_once"
query  = "SELECT COUNT(*) AS told FROM told"
expect = ":told >= :acknowledged and :told <= :acknowledged + :unknown"

[[invariants]]
name   = "each_kept_once"
query  = "SELECT n FROM kept"
expect = ":n >= :acknowledged and :n <= :acknowledged + :unknown"
"""
SOON: dict[str, dict[str, Level]] = {"mariadb": {}, "postgresql": {"deadlock_timeout": "10ms"}}
"""What lets an engine find a deadlock at once."""


@pytest.mark.parametrize("engine", sorted(SOON))
def test_what_a_script_has_committed_is_not_repeated_after_a_deadlock(
    engine: str, tmp_path: Path, shelf: Path
) -> None:
    script = tmp_path / "both.toml"
    script.write_text(SCRIPT)
    with started(engine, SOON[engine], tmp_path, shelf) as server:
        job = Job(url=server.url, workload=str(script), clients=8, duration_s=2.0)
        _driver.prepare(job.model_dump_json())
        tally = Tally.model_validate_json(_driver.run(job.model_dump_json()))
        checks = _driver.check(job.model_dump_json(), Acknowledged.by([tally]).model_dump_json())
    assert tally.retries > 0, "nobody was in the way of another"
    found = {one["name"]: (one["holds"], one["detail"]) for one in json.loads(checks)}
    assert [holds for holds, _ in found.values()] == [True, True], (found, tally.acknowledged, tally.unknown)
