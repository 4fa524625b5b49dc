"""A PostgreSQL that was built makes its own data, runs as the file that was built, and is measured."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from dbdyno.driver.passwords import query
from dbdyno.engines import built as engines_built
from dbdyno.engines.built import built
from dbdyno.engines.postgresql import POSTGRESQL
from dbdyno.host import fingerprint
from dbdyno.host.launch import Launch
from dbdyno.obtain.source.build import BuildSpecification
from tests.cli.calls import dyno
from tests.needs import skip_blocked, skipping_blocked
from tests.postgresql_fork import make_fork

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes", "quick_gate")]

STUDY = """
title  = "Which build?"
engine = "postgresql:{host}"
blocks = 1

[workload]
name       = "point_select"
table_size = 100
warmup     = "0s"
duration   = "0.2s"

[goal]
counted = false

[settings]
"source.origin" = "fork"
"source.recipe" = "recipe.toml"

[factors]
"build.optimisation" = ["-O2", "-O3"]
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())


def test_a_build_makes_its_data_and_runs_as_the_file_that_was_built(tmp_path: Path) -> None:
    make_fork(tmp_path)
    found = built(POSTGRESQL, BuildSpecification(origin="fork", recipe="recipe.toml"), tmp_path)
    assert found.installation.command == (str(found.program),)
    assert all("-O2" in line for line in found.recorded.command_lines)
    with tempfile.TemporaryDirectory(prefix="dyno-test-") as runtime, skipping_blocked():
        POSTGRESQL.life.initialise(found.installation, tmp_path / "data", {})
        server = POSTGRESQL.life.start(
            found.installation, tmp_path / "data", Path(runtime), {"work_mem": "5MB"}, Launch()
        )
        try:
            assert query(server.url, "SHOW work_mem") == [["5MB"]]
            assert found.program in fingerprint.mapped(server.process_ids[0])
        finally:
            server.stop()


def test_a_study_measures_two_builds_on_data_of_one_server(tmp_path: Path) -> None:
    host = make_fork(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.format(host=host))
    done = dyno("run", str(tmp_path / "study.toml"), "--json")
    trials = json.loads(done.stdout)["trials"]
    if any(trial["outcome"] == "blocked" for trial in trials):
        skip_blocked(trials[0]["cause"], trials[0]["remedy"])
    assert {trial["variant"]: trial["outcome"] for trial in trials} == {
        "baseline": "measured",
        "build.optimisation=-O3": "measured",
    }
    kept = json.loads(dyno("cache", "list", "--json").stdout)["things"]
    assert sum(thing["kind"] == "builds" for thing in kept) == 2
    assert {thing["origin"] for thing in kept if thing["kind"] == "pristine"} == {str(host)}
