"""What `dyno load` says of errors, of files that are none of its own, and which hints it gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import complaint, dyno
from tests.cli.load_cases import url as url


def test_a_run_without_a_success_fails_with_what_the_errors_said(homes: Path, url: str) -> None:
    script = homes / "none.sql"
    script.write_text("SELECT 1;\nSELECT 2 AS x WHERE 1 = 0 \\gset\n")
    for count in ("1", "7"):
        said = dyno("load", "run", str(script), "--url", url, "--warmup", "0", "--operations", count)
        assert said.returncode == 1
        assert "none.sql:2: \\gset needs one row, and there were 0" in said.stdout
        assert "no transaction succeeded: user" in said.stderr and "none.sql:2" in said.stderr


def test_each_error_comes_with_its_line_and_how_often(homes: Path, url: str) -> None:
    script = homes / "third.sql"
    script.write_text("\\set n random(1, 3)\nSELECT :n AS x WHERE :n > 1 \\gset\n")
    options = ("--url", url, "--warmup", "0", "--operations", "300", "--time", "60")
    counted = json.loads(dyno("load", "run", str(script), *options, "--json").stdout)
    assert counted["error_examples"] == {"user": f"{script}:2: \\gset needs one row, and there were 0"}
    said = dyno("load", "run", str(script), *options)
    assert said.stdout.splitlines()[1].startswith("warning: ")
    assert f"user, {counted['errors']['user']} times: {script}:2: " in said.stdout
    assert said.returncode == 0


@pytest.mark.parametrize("name", ["workload.properties", "tpcc.xml", "script"])
def test_a_file_whose_ending_says_nothing_is_refused_before_anything_is_sent(
    homes: Path, tmp_path: Path, name: str
) -> None:
    file, database = tmp_path / name, tmp_path / "own.db"
    file.write_text("CREATE TABLE sent (id INTEGER);\n")
    database.touch()
    for verb in ("prepare", "run", "check", "cleanup"):
        message = complaint("load", verb, str(file), "--url", f"sqlite://{database}")
        assert f"the ending of {file} does not say what kind of file it is" in message
        assert ".pgbench" in message
    assert database.stat().st_size == 0


def test_every_verb_takes_the_clients(homes: Path, url: str) -> None:
    for verb in ("check", "cleanup"):
        said = dyno("load", verb, "tpcb", "--url", url, "--clients", "2")
        assert said.returncode == 0, said.stderr
    assert dyno("load", "prepare", "tpcb", "--url", url, "--clients", "2").returncode == 0


@pytest.mark.parametrize(
    ("sql", "hinted"), [("SELECT * FROM nowhere;", True), ("SELECT nothing;", False), ("SELEC 1;", False)]
)
def test_the_hint_to_prepare_is_for_a_missing_table(homes: Path, url: str, sql: str, hinted: bool) -> None:
    script = homes / "asks.sql"
    script.write_text(sql + "\n")
    message = complaint("load", "run", str(script), "--url", url, "--warmup", "0", code=1)
    assert "asks.sql:1" in message
    assert ("prepare the script's tables first" in message) is hinted


@pytest.mark.parametrize("workload", ["tpcb", "read_write", "vector_search"])
def test_an_application_is_asked_for_no_sql(homes: Path, workload: str) -> None:
    said = complaint("load", "run", workload, "--url", "http://127.0.0.1:1")
    assert f"{workload} writes SQL, and an application takes requests" in said
    assert "script" in said
