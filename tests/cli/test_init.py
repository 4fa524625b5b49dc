"""A first study is one that `dyno plan` accepts."""

from __future__ import annotations

import io
import tempfile
import tomllib
from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.errors import EngineMissing
from dbdyno.host.fingerprint import core_count
from dbdyno.prepare_run.study_here import study_at
from dbdyno.study import Design
from tests.cli.calls import complaint, dyno
from tests.running_server import TUNER, users_server


@pytest.mark.parametrize("engine", sorted(registry.ENGINES))
def test_a_first_study_of_every_engine_is_accepted(engine: str, homes: Path) -> None:
    path = homes / "first.toml"
    answers = ["--goal", "latency", "--clients", "4", "--size", "2", "--time", "10m"]
    said = dyno("init", engine, *answers, "--output", str(path))
    assert said.returncode == 0, said.stderr
    assert f"dyno run {path} --budget 10m" in said.stdout
    study = study_at(path)
    assert (study.engine.engine, study.goal.response, study.workload.clients) == (engine, "p99_ms", 4)
    assert study.workload.options["scale"] == 2 and len(study.factors) >= 2
    assert "is there already" in complaint("init", engine, "--output", str(path))
    text = path.read_text()
    assert max(map(len, text.splitlines())) <= 100
    cpus = core_count()
    assert f"for this host: {cpus} CPU" in text and "GiB of memory available" in text
    comments = [line for line in text.splitlines() if line.startswith("# ")]
    assert sum(line.startswith("# simple_update") for line in comments) == 1


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


def test_what_no_study_can_have_is_asked_for_again(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = homes / "first.toml"
    monkeypatch.setattr("sys.stdin", Terminal("\n\n0\n5\n0\n7\nsoon\n45m\n"))
    said = dyno("init", "sqlite", "--output", str(path))
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("Error: ") == 3 and f"dyno run {path} --budget 45m" in said.stdout
    study = study_at(path)
    assert (study.workload.clients, study.workload.options["scale"]) == (5, 7)
    assert "is no duration" in complaint("init", "sqlite", "--time", "10", "--output", "x.toml")


def test_a_study_is_written_into_a_folder_that_is_not_there(homes: Path) -> None:
    path = homes / "studies" / "first.toml"
    assert dyno("init", "sqlite", "--output", str(path)).returncode == 0
    assert [file.name for file in path.parent.iterdir()] == ["first.toml"]


def test_clients_are_proposed_for_the_cpus_of_this_host(homes: Path) -> None:
    path = homes / "first.toml"
    assert dyno("init", "sqlite", "--output", str(path)).returncode == 0
    assert study_at(path).workload.clients == max(8, 4 * core_count())


@pytest.mark.parametrize(
    ("workload", "key"),
    [("tpcc", "warehouses"), ("point_select", "table_size"), ("vector_search", "vectors")],
)
def test_the_data_are_sized_in_the_workloads_own_measure(homes: Path, workload: str, key: str) -> None:
    path = homes / "first.toml"
    size = ["--workload", workload, "--size", "3"]
    assert dyno("init", "mariadb", *size, "--output", str(path)).returncode == 0
    assert tomllib.loads(path.read_text())["workload"][key] == 3
    beyond = complaint("init", "mariadb", *size[:3], "9" * 12, "--output", str(homes / "other.toml"))
    assert f"cannot have {key} = {'9' * 12}" in beyond


def test_a_size_in_bytes_and_a_name_of_another_tool_are_told_what_is_meant(homes: Path) -> None:
    said = " ".join(complaint("init", "mariadb", "--size", "10MB").split())
    assert "'10MB' is no whole number" in said and "rows of a table" in said
    assert "here this is `tpcb`" in complaint("init", "mariadb", "--goal", "cpu", "--workload", "pgbench")


def test_a_setting_of_another_engine_is_told_its_counterpart(homes_with_engines: Path) -> None:
    path = homes_with_engines / "foreign.toml"
    path.write_text(FOREIGN)
    assert "what serves its purpose here is config.DefaultDbCachePages" in complaint("plan", str(path))


FOREIGN = """
title    = "Which cache?"
engine   = "firebird@5"
workload.name = "tpcb"
factors."config.shared_buffers" = ["128MB", "1GB"]
"""


def test_a_file_that_you_have_gives_the_baselines_levels(homes: Path) -> None:
    (homes / "my.conf").write_text("synchronous_commit = off\nshared_buffers = 128MB\nwork_mem = 8MB\n")
    path = homes / "first.toml"
    said = dyno("init", "postgresql", "--from", str(homes / "my.conf"), "--output", str(path))
    assert said.returncode == 0, said.stderr
    study = tomllib.loads(path.read_text())
    assert study["engine"] == {"name": "postgresql", "configuration": "my.conf"}
    assert study["factors"]["config.synchronous_commit"] == ["off", "on"]
    assert study["factors"]["config.shared_buffers"][0] == "128MB"


def test_two_configuration_files_make_a_study_of_what_differs(homes_with_engines: Path) -> None:
    (homes_with_engines / "a.conf").write_text(
        "TempCacheLimit = 32M\nLockMemSize = 2M\nTempBlockSize = 1M\nGCPolicy = combined\n"
    )
    (homes_with_engines / "b.conf").write_text("TempCacheLimit = 64M\nLockMemSize = 2M\nTempBlockSize = 2M\n")
    path = homes_with_engines / "gap.toml"
    files = ["--from", str(homes_with_engines / "a.conf"), "--and", str(homes_with_engines / "b.conf")]
    said = dyno("init", "firebird", *files, "--output", str(path))
    assert said.returncode == 0, said.stderr
    study = study_at(path)
    assert study.design is Design.FACTORIAL
    assert {factor.name: factor.levels for factor in study.factors} == {
        "config.TempCacheLimit": ("32M", "64M"),
        "config.TempBlockSize": ("1M", "2M"),
    }
    assert study.settings == {"config.LockMemSize": "2M", "config.GCPolicy": "combined"}
    assert "alike: GCPolicy, LockMemSize" in said.stdout, "what is set to the default is no difference"
    assert 'configuration = "a.conf"' in path.read_text()


DEBIANS = """
[mysqld]
innodb_io_capacity = 900
innodb_doublewrite = 0
log_bin = /var/log/mysql/bin
[mariadbd]
character-set-server  = utf8mb4
collation-server      = utf8mb4_general_ci
"""


def test_what_one_file_has_alone_is_varied_against_the_engines_default(homes_with_engines: Path) -> None:
    """Settings that need each other are varied together, because their combinations are none."""
    (homes_with_engines / "a.cnf").write_text("[mysqld]\ninnodb_io_capacity = 300\n")
    (homes_with_engines / "b.cnf").write_text(DEBIANS)
    path = homes_with_engines / "gap.toml"
    files = ["--from", str(homes_with_engines / "a.cnf"), "--and", str(homes_with_engines / "b.cnf")]
    said = dyno("init", "mariadb@10.11", *files, "--output", str(path))
    if "is not here" in said.stderr:
        pytest.skip(f"mariadb@10.11 cannot be had here: {said.stderr}")
    assert said.returncode == 0, said.stderr
    study = study_at(path)
    assert {factor.name: factor.levels for factor in study.factors} == {
        "config.innodb_io_capacity": ("300", "900"),
        "config.innodb_doublewrite": ("ON", "0"),
        "config.log_bin": ("OFF", True),
        "config.character_set_server": ("latin1", "utf8mb4"),
        "config.collation_server": ("latin1_swedish_ci", "utf8mb4_general_ci"),
    }
    assert study.variants[-1].name == "b.cnf" and study.engine.version == "10.11"
    assert study.variants[-1].levels == {one.name: one.levels[-1] for one in study.factors}
    assert "character_set_server and collation_server" in [one.name for one in study.variants]


def test_many_differences_are_one_variant_and_a_bisection(homes_with_engines: Path) -> None:
    names = ("TempCacheLimit", "LockMemSize", "TempBlockSize", "LockHashSlots", "DeadlockTimeout")
    lines = [f"{name} = {number}M" for number, name in enumerate(names[:3], 40)]
    lines += [f"{name} = {number}" for number, name in enumerate(names[3:], 401)]
    lines += ["DefaultDbCachePages = 4096", "GCPolicy = cooperative"]
    (homes_with_engines / "a.conf").write_text("DefaultDbCachePages = 2000\n")
    (homes_with_engines / "b.conf").write_text("\n".join(lines))
    path = homes_with_engines / "gap.toml"
    files = ["--from", str(homes_with_engines / "a.conf"), "--and", str(homes_with_engines / "b.conf")]
    said = dyno("init", "firebird", *files, "--output", str(path))
    assert f"dyno bisect {path} --settings" in said.stdout, said.stderr
    study = study_at(path)
    assert study.design is Design.LIST and [one.name for one in study.variants] == ["baseline", "b.conf"]
    assert len(study.factors) == 7


def test_the_version_may_be_an_option_and_agrees_with_the_name(homes: Path) -> None:
    newest = homes / "option.toml"
    version = registry.engine("sqlite").obtaining.offers()[0].version
    said = dyno("init", "sqlite", "--engine", f"sqlite@{version}", "--output", str(newest))
    assert said.returncode == 0, said.stderr
    assert study_at(newest).engine.version == version
    told = complaint("init", "mariadb", "--engine", "postgresql@17", "--output", str(homes / "no.toml"))
    assert "mariadb and --engine postgresql@17 are not the same" in told
    assert "dyno init postgresql@17" in told


def test_the_engine_of_a_first_study_may_have_a_version(homes: Path) -> None:
    path = homes / "first.toml"
    assert dyno("init", "firebird@5", "--output", str(path)).returncode == 0
    assert study_at(path).engine.version == "5"


@pytest.mark.parametrize(
    ("engine", "name", "sets"),
    [
        ("mariadb@11.8", "innodb_io_capacity", ("SET GLOBAL innodb_io_capacity = 300",)),
        ("mysql@9", "innodb_io_capacity", ("SET GLOBAL innodb_io_capacity = 300",)),
        ("postgresql", "work_mem", ("ALTER SYSTEM SET work_mem = '5MB'", "SELECT pg_reload_conf()")),
    ],
)
def test_a_running_server_gives_the_baselines_levels(
    homes_with_engines: Path, engine: str, name: str, sets: tuple[str, ...]
) -> None:
    account = [f"CREATE ROLE {TUNER} LOGIN"]
    if engine != "postgresql":
        account = [f"CREATE USER {TUNER}@localhost", f"GRANT SELECT ON dyno.* TO {TUNER}@localhost"]
    path = homes_with_engines / "first.toml"
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        try:
            with users_server(engine, Path(folder)) as server:
                server.tell(*account, *sets)
                product = engine.partition("@")[0]
                said = dyno("init", product, "--url", server.url, "--output", str(path))
                version = server.installation.version
        except EngineMissing as missing:
            pytest.skip(f"{engine} is not here: {missing.message}")
    assert said.returncode == 0, said.stderr
    study = study_at(path)
    assert version.startswith(study.engine.version) and study.engine.version
    assert study.settings.get(f"config.{name}", study.baseline.get(f"config.{name}")) in ("300", "5MB")


def test_a_wrong_password_names_its_source(homes_with_engines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", "wrong")
    monkeypatch.setenv("HOME", str(homes_with_engines))
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        try:
            with users_server("mariadb@11.8", Path(folder)) as server:
                server.tell(f"CREATE USER {TUNER}@localhost IDENTIFIED BY 'right'")
                output = str(homes_with_engines / "first.toml")
                said = complaint("init", "mariadb", "--url", server.url, "--output", output, code=1)
                load = complaint("load", "run", "tpcb", "--url", server.url, code=1)
                monkeypatch.delenv("MYSQL_PWD")
                none = complaint("init", "mariadb", "--url", server.url, "--output", output, code=1)
        except EngineMissing as missing:
            pytest.skip(f"mariadb@11.8 is not here: {missing.message}")
    for told in (said, load):
        assert "the password comes from MYSQL_PWD" in told and "wrong" not in told
    assert "give a password: neither the URL nor ~/.my.cnf nor MYSQL_PWD holds one" in none


def test_files_that_set_nothing_differently_give_no_study(homes: Path) -> None:
    (homes / "a.conf").write_text("LockMemSize = 2M\n")
    same = str(homes / "a.conf")
    output = str(homes / "gap.toml")
    assert "nothing differently" in complaint(
        "init", "firebird", "--from", same, "--to", same, "--output", output
    )
    assert not Path(output).exists()


def test_the_studies_that_come_with_dyno_are_listed(homes: Path) -> None:
    listed = dyno("init", "--example")
    assert listed.returncode == 0 and listed.stdout.splitlines()[0].split() == ["study", "engine", "asks"]
    assert any(line.startswith("quickstart ") and "firebird@5" in line for line in listed.stdout.splitlines())


def test_a_study_that_comes_with_dyno_is_written_with_what_it_refers_to(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(homes)
    said = dyno("init", "--example", "application")
    assert said.stdout.split() == [
        "application.toml",
        *("docs/guides/keystone.toml", "keystone/keystone.conf", "keystone/served.py"),
    ]
    assert "dyno plan application.toml" in said.stderr
    again = dyno("init", "--example", "application")
    assert again.returncode == 0
    Path("application.toml").write_text("title = 'mine'\n")
    assert "is there already" in complaint("init", "--example", "application")
    assert Path("application.toml").read_text() == "title = 'mine'\n"


def test_an_example_is_no_study_of_an_engine(homes: Path) -> None:
    assert "did you mean `quickstart`" in complaint("init", "--example", "quikstart")
    assert "leave one of the two out" in complaint("init", "--example", "quickstart", "mariadb")
    assert dyno("init").returncode == 2
