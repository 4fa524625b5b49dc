"""What a study refers to is kept with its run, compared, and carried out again, on real runs of SQLite."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import complaint, dyno

# The loads are short, and a disk that others use may answer no commit within them.
STUDY = """
title = "kept"
engine = "sqlite"
blocks = 1
arrangement = "one-after-the-other"
[settings]
"config.synchronous" = "OFF"
[workload]
name = "script"
file = "w.toml"
warmup = "0s"
duration = "0.2s"
[factors]
"config.cache_size" = [-2000, -4000]
"""
WORKLOAD = """
[setup]
file = "sql/schema.sql"
[[tables]]
name = "accounts"
rows = 1000
columns = { id = "row()", balance = "0" }
[[transactions]]
name = "pay"
statements = ["SELECT 1", "UPDATE accounts SET balance = balance + 1 WHERE id = 1"]
[[invariants]]
name = "rows"
query = "SELECT count(*) FROM accounts"
expect = "1000"
"""
SCHEMA = "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER);\n"


def project(folder: Path, rows: int = 1000) -> Path:
    """A folder with a study of a workload of its own, which includes a file. Returns the study's path."""
    (folder / "sql").mkdir(parents=True)
    (folder / "w.toml").write_text(WORKLOAD.replace("1000", str(rows)))
    (folder / "sql/schema.sql").write_text(SCHEMA)
    (folder / "study.toml").write_text(STUDY)
    return folder / "study.toml"


def rewritten(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def shown(run: str = "last") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dyno("report", run, "--json", "--trials").stdout)
    return found


def measured(*arguments: str) -> str:
    """Carries a study out, all of whose trials must hold. Returns the run's name."""
    said = dyno("run", *arguments, "--quiet")
    found = shown()
    assert {trial["outcome"] for trial in found["trials"]} == {"measured"}, (said.stderr, found["trials"])
    return str(found["run"]["run"])


def pristine(home: Path) -> set[str]:
    """The pristine data that were made."""
    return {one.name for one in home.rglob("pristine/*") if (one / "pristine.json").exists()}


def test_pristine_data_go_by_what_files_say_and_not_by_where_they_lie(homes: Path) -> None:
    study = project(homes / "one")
    measured(str(study))
    rewritten(homes / "one/w.toml", "1000", "50")
    measured(str(study))
    measured(str(project(homes / "two", rows=7)))
    before = pristine(homes)
    assert len(before) == 3
    # The same text elsewhere shares its data, and an included file counts like the first.
    measured(str(project(homes / "three", rows=7)))
    assert pristine(homes) == before
    rewritten(homes / "three/sql/schema.sql", "INTEGER)", "BIGINT)")
    measured(str(homes / "three/study.toml"))
    assert len(pristine(homes) - before) == 1


def test_a_path_counts_from_the_study_wherever_the_command_is_given(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(homes / "one")
    monkeypatch.chdir(homes)
    measured("one/study.toml")
    (homes / "elsewhere").mkdir()
    monkeypatch.chdir(homes / "elsewhere")
    measured("../one/study.toml")


def test_all_missing_files_are_told_with_their_lines_before_anything_starts(homes: Path) -> None:
    study = project(homes / "one")
    (homes / "one/sql/schema.sql").unlink()
    study.write_text(study.read_text() + '"source.patches" = ["none", "gone.patch"]\n')
    for verb in ("plan", "run"):
        told = complaint(verb, str(study))
        assert "line 10: " in told and "w.toml:3: sql/schema.sql cannot be read" in told, told
        assert "line 15: gone.patch cannot be read: No such file or directory" in told, told
    (homes / "one/w.toml").unlink()
    told = complaint("plan", str(study))
    assert "line 10: w.toml cannot be read: No such file or directory" in told, told
    assert f"its path counts from {homes / 'one'}" in told
    # A folder and a device are no files either.
    (homes / "one/w.toml").mkdir()
    assert "w.toml cannot be read: Is a directory" in complaint("plan", str(study))


def test_a_run_keeps_the_text_and_hash_of_all_files(homes: Path) -> None:
    study = project(homes / "one")
    measured(str(study))
    files = {file["path"]: file for file in shown()["run"]["files"]}
    assert files["w.toml"]["text"] == (homes / "one/w.toml").read_text()
    assert files["sql/schema.sql"]["size_bytes"] == len(SCHEMA)
    assert "sql/schema.sql" in dyno("report", "--trials").stdout
    assert "accounts" not in json.dumps(json.loads(dyno("report", "last", "--json").stdout)["run"]["files"])


def test_runs_of_other_statements_are_not_paired(homes: Path) -> None:
    study = project(homes / "one")
    one = measured(str(study), "--blocks", "2")
    rewritten(homes / "one/w.toml", "[setup]", "# A comment asks nothing.\n[setup]")
    same = measured(str(study), "--blocks", "2")
    assert dyno("compare", one, same).returncode == 0
    rewritten(homes / "one/w.toml", "balance + 1", "balance + 2")
    other = measured(str(study), "--blocks", "2")
    statement = (
        'transaction "pay", statement 2: UPDATE accounts SET balance = balance + 1 WHERE id = 1 -> UPDATE'
    )
    for verb in (["compare", one, other], ["gate", other, "--against", one]):
        assert statement in complaint(*verb)
    assert statement in complaint("run", str(study), "--against", one)
    runs = {run["run"]: run for run in json.loads(dyno("trend", str(study), "--json").stdout)["runs"]}
    assert runs[other]["changed"] == ["files"] and not runs[same]["changed"]


def test_an_unfinished_run_does_not_go_on_with_other_files(homes: Path) -> None:
    study = project(homes / "one")
    run = measured(str(study))
    rewritten(homes / "one/sql/schema.sql", "INTEGER)", "BIGINT)")
    told = complaint("run", "--resume", run, "--add-blocks", "1")
    assert "sql/schema.sql has changed since" in told and f"dyno run --again {run}" in told, told
    assert "has changed since" in complaint("profile", run)


SHAPE = (
    STUDY.partition("[workload]")[0]
    + """
[workload]
name = "tpcb"
arrivals = "uniform"
warmup = "0s"
duration = "2s"
[factors]
"workload.schedule" = ["file:day.csv,over 2s,x0.01", "file:day.csv,over 2s,x0.02"]
"""
)
DAY = "time,rate\n00:00,0\n06:00,1000\n12:00,2000\n24:00,2000\n"


def test_a_day_in_a_file_is_the_load_of_a_run_and_belongs_to_it(homes: Path) -> None:
    study, day = homes / "shape.toml", homes / "day.csv"
    study.write_text(SHAPE)
    day.write_text(DAY.replace("12:00", "05:00"))
    told = complaint("plan", str(study))
    assert told.count('line 15: day.csv, line 4: the time "05:00" goes back') == 1, told
    day.write_text(DAY)
    run = measured(str(study))
    found = shown()
    assert [(file["kind"], file["text"]) for file in found["run"]["files"]] == [("schedule", DAY)]
    for trial in found["trials"]:
        times = 2 if trial["levels"]["workload.schedule"].endswith("x0.02") else 1
        driven = [[0.0, 0.0], [0.5, 10.0 * times], [1.0, 20.0 * times], [2.0, 20.0 * times]]
        [proof] = [one for one in trial["evidence"] if one["factor"] == "workload.schedule"]
        assert json.loads(proof["effective"]["value"])["points"] == driven
        counted = next(check["detail"] for check in trial["checks"] if check["name"] == "operations")
        # A busy machine may get through fewer than are due, never through more.
        assert 0 < int(counted.split()[0]) <= 30 * times
    # A comment changes no point, but nobody measures with a file that is another one.
    day.write_text(DAY + "# Tuesday\n")
    assert f"{day} has changed since: day.csv, line 6" in complaint(
        "run", "--resume", run, "--add-blocks", "1"
    )
    day.unlink()
    measured("--again", run)


def test_a_run_is_carried_out_again_where_its_files_are_gone(homes: Path) -> None:
    study = project(homes / "shop/studies")
    # One file lies above the study's folder.
    (homes / "shop/sql").mkdir()
    (homes / "shop/studies/sql/schema.sql").rename(homes / "shop/sql/schema.sql")
    rewritten(homes / "shop/studies/w.toml", "sql/schema.sql", "../sql/schema.sql")
    first = measured(str(study), "--blocks", "2")
    shutil.rmtree(homes / "shop")
    again = measured("--again", first)
    found = shown()["run"]
    assert again != first and found["blocks"] == 2
    assert [(file["path"], file["digest"]) for file in found["files"]] == [
        (file["path"], file["digest"]) for file in shown(first)["run"]["files"]
    ]
    assert Path(found["study_path"]).is_file() and again in found["study_path"]
    assert dyno("compare", first, again).returncode == 0
    # What was carried out again can be so itself, and goes on.
    measured("--again", again)
    assert dyno("run", "--resume", again, "--add-blocks", "1", "--quiet").returncode == 0


def test_what_was_not_kept_must_be_at_its_place(homes: Path) -> None:
    study = project(homes / "one")
    large = homes / "one/sql/schema.sql"
    large.write_text(SCHEMA + "-- padding\n" * 120_000)
    run = measured(str(study))
    kept = next(file for file in shown()["run"]["files"] if file["path"] == "sql/schema.sql")
    assert "text" not in kept and kept["size_bytes"] == large.stat().st_size
    (homes / "one/w.toml").unlink()
    measured("--again", run)
    rewritten(large, "INTEGER)", "BIGINT)")
    assert f"{large} is another file now" in complaint("run", "--again", run)
    large.unlink()
    assert f"{large} cannot be read: No such file" in complaint("run", "--again", run)


def test_a_script_in_lua_is_kept_with_what_it_loads_and_found_beside_it(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = homes / "one"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/names.lua").write_text("return {table = 'accounts'}\n")
    (folder / "rows.lua").write_text("rows = 10\n")
    (folder / "s.lua").write_text(
        'local names = require("lib.names")\n'
        'dofile("rows.lua")\n'
        "function thread_init() connection = sysbench.sql.driver():connect() end\n"
        "function prepare()\n"
        "   local made = sysbench.sql.driver():connect()\n"
        '   made:query("CREATE TABLE " .. names.table .. " (id INTEGER PRIMARY KEY)")\n'
        '   for row = 1, rows do made:query("INSERT INTO " .. names.table .. " VALUES (" .. row .. ")") end\n'
        "end\n"
        'function event() connection:query("SELECT 1") end\n'
    )
    lua = STUDY.replace('"script"', '"lua"').replace("w.toml", "s.lua")
    (folder / "study.toml").write_text(lua)
    monkeypatch.chdir(homes)
    run = measured("one/study.toml")
    assert {file["path"] for file in shown()["run"]["files"]} == {"s.lua", "lib/names.lua", "rows.lua"}
    before = pristine(homes)
    (folder / "rows.lua").write_text("rows = 20\n")
    other = measured("one/study.toml")
    assert len(pristine(homes) - before) == 1
    assert "rows.lua, line 1: rows = 10 -> rows = 20" in complaint("compare", run, other)
    shutil.rmtree(folder)
    measured("--again", run)
    assert pristine(homes) >= before


def test_a_file_whose_password_was_not_kept_is_not_carried_out_again(homes: Path, tmp_path: Path) -> None:
    study = project(tmp_path / "p")
    rewritten(tmp_path / "p/w.toml", "[setup]", "# mysql://me:s3cret@h/x\n[setup]")
    assert dyno("run", str(study), "--quiet").returncode == 0
    assert all(b"s3cret" not in path.read_bytes() for path in homes.glob("data/**/*") if path.is_file())
    assert "the password in w.toml was not kept" in complaint("run", "--again", "last")
