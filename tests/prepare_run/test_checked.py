"""What `plan` and `run` tell of a study before anything of it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.host import cache, paths
from dbdyno.host.host_lock import alone
from dbdyno.host.room import memory_limit
from dbdyno.obtain.installation import Installation
from dbdyno.prepare_run.study_here import located
from dbdyno.study.nouns import Reference
from tests.cli.calls import calls_counted, complaint, dyno
from tests.cli.checked_cases import line_of, nothing_is_left, require
from tests.cli.schemas import require_valid
from tests.obtain.path_cases import program
from tests.study_texts import STUDY as BUILT_IN

STUDY = """
title  = "Which level?"
engine = "{engine}"
blocks = 1

[workload]
name     = "script"
file     = "{file}"
warmup   = "0s"
duration = "0.3s"

[factors]
"workload.clients" = [1, 2]
"""

WORKLOAD = """
[setup]
statements = ["CREATE TABLE account (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40), money INTEGER)"]

[[tables]]
name = "account"
rows = 10
columns = { id = "row()", name = "text(5, 30)", money = 7 }

[[transactions]]
name = "look"
values = { id = "uniform(1, 10)" }
statements = [
  "SELECT money FROM account WHERE id = :id",
  "UPDATE account SET money = money + 1 WHERE id = :id",
]

[[invariants]]
name = "rows"
query = "SELECT COUNT(*) AS n FROM account"
expect = ":n = 10"
"""

WRONG = (
    WORKLOAD.replace("money = 7", "money = 7, colour = 1")
    .replace("SELECT money FROM account", "SELECT money FROM acount")
    .replace("SET money = money + 1", "SET monney = 1")
    .replace("COUNT(*) AS n FROM account", "COUNT(*) AS n FROM customer")
)

ENGINES = ("sqlite", "firebird", "mariadb@11.8", "mysql", "postgresql")


def written(folder: Path, workload: str, engine: str = "sqlite", more: str = "") -> Path:
    """A study in a folder, of a workload that stands there."""
    file = folder / "bank.toml"
    file.write_text(workload)
    path = folder / "study.toml"
    path.write_text(STUDY.format(engine=engine, file=file) + more)
    return path


def test_all_mistakes_are_told_at_once_each_with_its_line_and_a_remedy(homes: Path) -> None:
    wrong = (
        WORKLOAD.replace("row()", "rwo()")
        .replace("text(5, 30)", "text(5")
        .replace("uniform(1, 10)", "uniform(1)")
        .replace(":n = 10", ":n == == 10")
    )
    huge = '"config.shared_buffers" = ["128MB", "7000GB"]\n"build.compiler" = ["gcc-98", "gcc-99"]\n'
    path = written(homes, wrong, "postgresql:/nowhere/postgres", huge)
    said = complaint("plan", str(path))
    assert f"{path}: 8 mistakes; nothing was measured" in said
    assert f"{line_of(path, 'engine')}: there is no server at /nowhere/postgres" in said
    for part, told in (
        ("rwo", "there is no function rwo"),
        ("text(5", '")" is missing'),
        ("uniform(1)", "uniform cannot take 1 arguments"),
        ("== ==", "a value is expected here"),
    ):
        place = line_of(homes / "bank.toml", part).replace("line ", "bank.toml:")
        assert f"{line_of(path, 'file')}: {homes / place}: {told}" in said
    assert (
        f"{line_of(path, 'shared_buffers')}: with `config.shared_buffers` = 7000GB a server may take" in said
    )
    for compiler in ("gcc-98", "gcc-99"):
        told = f"the build {compiler} -O2 cannot be made: there is no compiler {compiler} here"
        assert f"{line_of(path, compiler)}: {told}" in said
    assert complaint("run", str(path)) == said
    assert complaint("soak", str(path)).count("bank.toml:") == 4


def test_a_version_that_nobody_has_is_refused_with_those_that_there_are(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(
        BUILT_IN.replace('"sqlite"', '"mariadb@5.1"').split('"config')[0] + '"workload.clients" = [1, 2]\n'
    )
    said = complaint("plan", str(path))
    assert "mariadb@5.1 is not on this machine, and cannot be fetched" in said
    assert "mariadb@11.8 (`dyno engines fetch`)" in said
    assert f"{line_of(path, 'engine')}: " in said


def test_a_path_that_holds_no_engine_is_refused(homes: Path) -> None:
    other = program(homes / "postgres", "#!/bin/sh\necho 'cowsay 1.0'\n")
    said = complaint("plan", str(written(homes, WORKLOAD, f"postgresql:{other}")))
    assert "is not a PostgreSQL server" in said and "line 3: " in said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_server_judges_the_statements_once_and_leaves_nothing(
    homes_with_engines: Path, engine: str
) -> None:
    require(engine)
    path = written(homes_with_engines, WRONG, engine)
    said = complaint("plan", str(path))
    assert "4 mistakes; nothing was measured" in said
    for part in ("[[tables]]", "acount", "monney", "expect"):
        place = line_of(homes_with_engines / "bank.toml", part).replace("line ", "bank.toml:")
        assert f"{line_of(path, 'file')}: {homes_with_engines / place}: " in said, (place, said)
    assert nothing_is_left()
    with calls_counted() as calls:
        assert complaint("run", str(path)) == said
    assert calls["_said"] == 0
    right = written(homes_with_engines, WORKLOAD, engine)
    planned = dyno("plan", str(right))
    assert planned.returncode == 0, planned.stderr
    told = f"prepared 4 statements of {homes_with_engines / 'bank.toml'} on an empty copy of the schema"
    # A path that is longer than a line is broken.
    assert "".join(told.split()) in "".join(planned.stdout.split())
    assert nothing_is_left()


def test_what_setup_says_wrong_is_told_alone(homes: Path) -> None:
    wrong = WORKLOAD.replace("CREATE TABLE account (", "CREATE TABLE account (,")
    said = complaint("plan", str(written(homes, wrong)))
    assert "1 mistake; nothing was measured" in said and "bank.toml:3: " in said


def test_statements_without_their_tables_are_refused(homes: Path) -> None:
    """As a slow log gives them."""
    alone_ = WORKLOAD[WORKLOAD.index("[[transactions]]") : WORKLOAD.index("[[invariants]]")]
    said = complaint("plan", str(written(homes, alone_)))
    assert said.count("no such table: account") == 2


@pytest.mark.parametrize("mode", ["auto", "prepared", "simple"])
def test_a_script_of_pgbench_is_judged_in_each_mode(homes: Path, mode: str) -> None:
    script, setup, path = homes / "look.pgbench", homes / "tables.sql", homes / "study.toml"
    setup.write_text("CREATE TABLE account (id INTEGER PRIMARY KEY, money INTEGER);\n")
    script.write_text(
        "\\set id random(1, 10)\nSELECT money FROM account WHERE id = :id;\nSELECT 1 FROM nowhere;\n"
    )
    path.write_text(STUDY.format(engine="sqlite", file=script))
    path.write_text(path.read_text().replace("warmup", f'mode = "{mode}"\nsetup = "{setup}"\nwarmup'))
    said = complaint("plan", str(path))
    assert "1 mistake; nothing was measured" in said
    assert f"{script}:3: " in said and "no such table: nowhere" in said
    script.write_text(script.read_text().replace("nowhere", "account"))
    planned = " ".join(dyno("plan", str(path)).stdout.split())
    left = "1 statement" if mode == "simple" else "2 statements"
    assert f"prepared {left} of" in planned
    assert ("1 other known in a run only" in planned) is (mode == "simple")


def test_what_depends_on_the_run_is_left_out_and_counted(homes: Path) -> None:
    later = WORKLOAD.replace(
        'statements = [\n  "SELECT', 'statements = [\n  "SELECT 1 FROM part_:id",\n  "SELECT'
    )
    planned = dyno("plan", str(written(homes, later)))
    assert planned.returncode == 0, planned.stderr
    assert "1 other known in a run only" in " ".join(planned.stdout.split())
    made = WORKLOAD.replace(
        '"SELECT money', '"CREATE TABLE own (id INTEGER)",\n  "SELECT id FROM own", "SELECT money'
    )
    planned = dyno("plan", str(written(homes, made)))
    assert planned.returncode == 0, planned.stderr
    assert "4 others known in a run only" in " ".join(planned.stdout.split())


def test_an_engine_that_is_not_here_leaves_the_statements_unchecked(homes: Path) -> None:
    path = written(homes, WRONG, "mariadb@10.11")
    if isinstance(located(Reference("mariadb", "10.11")), Installation):
        pytest.skip("this machine has it")
    planned = dyno("plan", str(path), "--json")
    assert planned.returncode == 0, planned.stderr
    require_valid("plan", planned.stdout)
    [check] = json.loads(planned.stdout)["checks"]
    assert check == (
        "the statements were not checked, because mariadb@10.11 is not on this machine;"
        " `dyno engines fetch mariadb@10.11` obtains it"
    )


def test_no_server_is_started_beside_one_who_measures(homes: Path) -> None:
    path = written(homes, WRONG)
    with alone("another study", 60), calls_counted() as calls:
        planned = dyno("plan", str(path))
        refused = dyno("plan", str(path), "--start")
    assert planned.returncode == 0, planned.stderr
    # A plan has no option to wait.
    assert refused.returncode != 0 and "--wait" not in refused.stderr
    assert "type this again when it has ended" in refused.stderr
    assert "the statements were not checked, because another dyno measures" in " ".join(
        planned.stdout.split()
    )
    assert calls["_said"] == 0


def test_statements_of_dynos_own_need_no_server(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(BUILT_IN)
    with calls_counted() as calls:
        assert dyno("plan", str(path)).returncode == 0
    assert calls["_said"] == calls["review"] == 0
    assert not (paths.cache_place() / "statements").exists()


def test_what_a_server_said_is_kept_by_what_it_was_asked(homes: Path) -> None:
    path = written(homes, WORKLOAD)
    for expected in (1, 0):
        with calls_counted() as calls:
            assert dyno("plan", str(path)).returncode == 0
        assert calls["_said"] == expected
    bank = homes / "bank.toml"
    bank.write_text(WORKLOAD.replace("money + 1", "money + 2"))
    with calls_counted() as calls:
        assert dyno("plan", str(path)).returncode == 0
    assert calls["_said"] == 1
    listed = json.loads(dyno("cache", "list", "--json").stdout)["things"]
    assert [row["kind"] for row in listed] == ["statements"] * 2
    cache.release()
    assert dyno("cache", "free", "--kind", "statements").returncode == 0


def test_a_baseline_that_does_not_start_is_a_mistake(homes: Path) -> None:
    require("postgresql")
    more = '[settings]\n"config.shared_preload_libraries" = "no_such_library"\n'
    said = complaint("plan", str(written(homes, WORKLOAD, "postgresql", more)))
    assert "the baseline's server, started to check the statements, failed: " in said
    assert "no_such_library" in said
    assert nothing_is_left()


def test_one_server_that_fits_is_told_with_those_beside_it(homes: Path) -> None:
    limit_bytes, _ = memory_limit()
    half_kib = limit_bytes // 2 // 1024
    path = homes / "study.toml"
    text = BUILT_IN.replace("config.synchronous", "config.cache_size")
    path.write_text(text.replace('["FULL", "OFF"]', f"[-{half_kib}, -{half_kib + 1}]"))
    planned = " ".join(dyno("plan", str(path)).stdout.split())
    assert "all servers together take about" in planned
    path.write_text(text.replace('["FULL", "OFF"]', "[-2000, -4000]"))
    planned = " ".join(dyno("plan", str(path)).stdout.split())
    assert "memory: the 2 servers of a block may take about" in planned
    path.write_text(text.replace('["FULL", "OFF"]', f"[-2000, -{half_kib * 3}]"))
    said = complaint("plan", str(path))
    assert (
        f"{line_of(path, 'cache_size')}: with `config.cache_size` = -{half_kib * 3} a server may take" in said
    )


def test_the_statements_of_a_lua_script_are_known_in_a_run_only(homes: Path) -> None:
    script, path = homes / "own.lua", homes / "study.toml"
    script.write_text("function event()\n  con:query('SELECT 1 FROM nothing')\nend\n")
    path.write_text(STUDY.format(engine="sqlite", file=script).replace('"script"', '"lua"'))
    planned = dyno("plan", str(path))
    assert planned.returncode == 0, planned.stderr
    # A path may be longer than the terminal's line.
    told = f"the statements of {script} are known in a run only"
    assert "".join(told.split()) in "".join(planned.stdout.split())
    script.write_text("function event(\n")
    assert f"{line_of(path, 'file')}: " in complaint("plan", str(path))


def test_a_version_older_than_the_first_takes_no_data_over(homes: Path) -> None:
    """The versions are those that two scripts in the place of a server tell."""
    versions = []
    for major in (17, 15):
        folder = homes / f"v{major}"
        folder.mkdir()
        versions.append(program(folder / "postgres", f"#!/bin/sh\necho 'postgres (PostgreSQL) {major}.2'\n"))
    levels = ", ".join(f'"postgresql:{one}"' for one in versions)
    path = homes / "study.toml"
    path.write_text(f'data = "upgraded"\n[workload]\nname = "tpcb"\n[factors]\nengine = [{levels}]\n')
    said = complaint("plan", str(path))
    assert f"{path}: 1 mistake" in said
    assert "line 1: " in said and "is PostgreSQL 17.2, and" in said and "which is 15.2, is older" in said
    assert "name the oldest version first" in said


DEVICES = """
engine = "sqlite"
workload.name = "tpcb"
factors."storage.device" = LEVELS
"""


def test_plan_says_which_variants_will_be_blocked_here(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(DEVICES.replace("LEVELS", '["disk", "/dev/no-such"]'))
    said = " ".join(dyno("plan", str(path)).stdout.split())
    assert "blocked, variant 1: /dev/no-such: not a block device of this machine; lsblk lists them" in said
    assert "will run: variant 0" in said


def test_a_baseline_that_will_be_blocked_is_a_mistake(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(DEVICES.replace("LEVELS", '["/dev/no-such", "disk"]'))
    for verb in ("plan", "run"):
        said = complaint(verb, str(path))
        assert "line 4: the baseline cannot be put into effect here: /dev/no-such" in said


@pytest.mark.parametrize(
    ("engine", "goal", "told"),
    [
        ("sqlite", 'response = "write_amplification"', "SQLite, which does not count the rows that change"),
        ("sqlite", 'guards = ["write_amplification <= 1.1x"]', "SQLite, which does not count the rows"),
        ("firebird@5", 'response = "space_amplification"', "Firebird, which does not tell what its tables"),
    ],
)
def test_what_an_engine_does_not_count_is_no_response_of_it(
    homes_with_engines: Path, engine: str, goal: str, told: str
) -> None:
    require(engine)
    path = homes_with_engines / "study.toml"
    path.write_text(
        f'engine = "{engine}"\nworkload.name = "tpcb"\nfactors."workload.clients" = [1, 2]\n[goal]\n{goal}\n'
    )
    for verb in ("plan", "run"):
        said = complaint(verb, str(path))
        assert "study.toml: 1 mistake; nothing was measured" in said
        assert f"{line_of(path, goal)}: `" in said and f"amplification` is not known of {told}" in said


def test_plan_starts_the_server_of_each_variant_where_that_is_asked(homes: Path) -> None:
    path = homes / "study.toml"
    text = 'engine = "sqlite"\nworkload.name = "tpcb"\nfactors."config.mmap_size" = [0, 9000000000000]\n'
    path.write_text(text)
    assert "blocked" not in dyno("plan", str(path)).stdout
    said = " ".join(dyno("plan", str(path), "--start").stdout.split())
    assert "blocked, variant 1: mmap_size = 9000000000000: " in said and "will run: variant 0" in said


def test_plan_names_each_setting_of_a_file_that_an_engine_lacks_once(homes: Path) -> None:
    (homes / "own.conf").write_text("DefaultDbCachePages = 512\nTempCacheLimit = 64M\n")
    path = homes / "study.toml"
    path.write_text(
        'engine = { name = "firebird@5", configuration = "own.conf" }\nworkload.name = "tpcb"\n'
        'factors.engine = ["firebird@5", "sqlite"]\n'
    )
    said = " ".join(dyno("plan", str(path), "--start").stdout.split())
    for name in ("DefaultDbCachePages", "TempCacheLimit"):
        assert said.count(f"no setting '{name}'; take it out of own.conf, or give it a level that each") == 1
    assert said.count("blocked, variant 1: ") == 2 and "will run: variant 0" in said
