"""The files of a recipe: what each says, and where it goes. Their folder is whole or not there."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from dbdyno.deploy import files
from dbdyno.deploy.deployment import DeployedBuild, Deployment
from dbdyno.deploy.files import (
    PROGRAMS,
    FilePlacement,
    RecipeFile,
    by_hand,
    files_beside,
    files_for_host,
    read_recipe_folder,
    write_recipe_folder,
)
from dbdyno.deploy.made import production_of
from dbdyno.engines.engine import Engine
from dbdyno.engines.firebird import FIREBIRD
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.postgresql import POSTGRESQL
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.obtain.source.build import Flags
from tests.deploy.recipes import recipe
from tests.needs import on_machine

HOST: dict[str, tuple[Level, Level]] = {
    "memory.allocator": ("libc", "jemalloc"),
    "memory.thp": ("always", "never"),
    "cpu.server": ("all", "0-1"),
}
POOL: dict[str, Level] = {"config.innodb_buffer_pool_size": "1G"}


def for_host(deployment: Deployment, engine: Engine) -> dict[str, RecipeFile]:
    return {file.name: file for file in files_for_host(deployment, production_of(engine))}


def text(file: RecipeFile) -> str:
    return file.content.decode()


def rows(deployment: Deployment, engine: Engine) -> list[list[str]]:
    production = production_of(engine)
    beside = files_beside(deployment, production, files_for_host(deployment, production))
    [table] = [text(file) for file in beside if file.name == "recipe.tsv"]
    return [line.split("\t") for line in table.splitlines()]


def lines(file: RecipeFile) -> list[str]:
    """Those that say something to who reads the file on a host."""
    return [line for line in text(file).splitlines() if not line.startswith("#")]


def test_settings_are_lines_and_what_was_held_is_a_comment() -> None:
    found = for_host(recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)}, POOL), MARIADB)
    [file] = found.values()
    assert file.place == "/etc/mysql/mariadb.conf.d/90-dyno.cnf"
    assert lines(file) == ["[mysqld]", "innodb_io_capacity = 2000"]
    assert "# innodb_buffer_pool_size = 1G" in text(file)


def test_a_whole_recipe_sets_what_was_held_as_well() -> None:
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)}, POOL)
    found = for_host(made.but(whole=True), MARIADB)
    assert "innodb_buffer_pool_size = 1G" in lines(found["90-dyno.cnf"])


def test_a_unit_gets_its_environment_and_directives() -> None:
    found = for_host(recipe(MARIADB, HOST), MARIADB)
    unit = found["systemd.conf"]
    assert unit.place == "/etc/systemd/system/mariadb.service.d/90-dyno.conf"
    assert lines(unit) == [
        "[Service]",
        'Environment="LD_PRELOAD=libjemalloc.so.2"',
        "CPUAffinity=",
        "CPUAffinity=0-1",
    ]
    assert lines(found["tmpfiles.conf"]) == ["w /sys/kernel/mm/transparent_hugepage/enabled - - - - never"]


def test_a_server_that_drops_its_units_environment_has_a_file_of_its_own() -> None:
    found = for_host(recipe(POSTGRESQL, {"memory.allocator": ("libc", "jemalloc")}), POSTGRESQL)
    [file] = found.values()
    assert (file.place, file.way) == ("/etc/postgresql/15/main/environment", FilePlacement.LAST)
    assert lines(file) == ["LD_PRELOAD = 'libjemalloc.so.2'"]


def test_pages_are_a_sysctl_and_the_disk_a_rule() -> None:
    factors: dict[str, tuple[Level, Level]] = {
        "memory.huge_pages": ("off", "2M"),
        "storage.scheduler": ("none", "bfq"),
        "storage.mount": ("defaults", "noatime"),
    }
    made = recipe(MARIADB, factors)
    found = for_host(made, MARIADB)
    [pages] = lines(found["sysctl.conf"])
    assert pages.startswith("vm.nr_hugepages = ")
    [rule] = lines(found["udev.rules"])
    assert 'KERNEL=="@DISK@"' in rule and 'ATTR{queue/scheduler}="bfq"' in rule
    assert found["udev.rules"].way is FilePlacement.DISK
    [line] = lines(found["fstab"])
    assert line.split()[2:4] == ["ext4", "noatime"]
    assert "fstab" in by_hand(made, found.values())
    assert ["mount", "ext4", "noatime"] in rows(made, MARIADB)


def test_firebirds_own_file_is_shared_and_its_database_is_changed_by_hand() -> None:
    factors: dict[str, tuple[Level, Level]] = {
        "config.DefaultDbCachePages": (2048, 65536),
        "config.forced_writes": (True, False),
    }
    made = recipe(FIREBIRD, factors)
    found = for_host(made, FIREBIRD)
    assert (found["firebird.conf"].place, found["firebird.conf"].way) == (
        "/opt/firebird/firebird.conf",
        FilePlacement.FIRST,
    )
    assert lines(found["firebird.conf"]) == ["DefaultDbCachePages = 65536"]
    assert by_hand(made, found.values())["forced_writes"] == "gfix -write async DATABASE"
    assert [change.factor for change in made.given_up] == ["config.forced_writes"]


def test_statements_of_an_embedded_engine_are_the_applications() -> None:
    made = recipe(
        SQLITE, {"config.synchronous": ("full", "normal"), "memory.allocator": ("libc", "jemalloc")}
    )
    found = for_host(made, SQLITE)
    assert "PRAGMA synchronous = normal;" in text(found["connection.sql"])
    assert all(file.place == "" for file in found.values())
    assert set(by_hand(made, found.values())) >= {"connection.sql", "systemd.conf"}


def test_each_row_has_no_empty_column() -> None:
    made = recipe(MARIADB, {**HOST, "config.innodb_io_capacity": (200, 2000)})
    found = rows(made, MARIADB)
    assert all(all(row) for row in found)
    kinds = {row[0] for row in found}
    assert kinds >= {"service", "client", "data", "file", "setting", "environment", "kernel", "hand"}
    assert ["setting", "innodb_io_capacity", "2000"] in [row[:3] for row in found]


def test_a_name_with_lines_stays_a_comment() -> None:
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)})
    hostile = made.but(variant="one\n[mysqld]\nskip-grant-tables")
    [file] = for_host(hostile, MARIADB).values()
    assert lines(file) == ["[mysqld]", "innodb_io_capacity = 2000"]


def test_the_scripts_are_programs() -> None:
    made = recipe(MARIADB, HOST)
    beside = files_beside(made, production_of(MARIADB), [])
    assert {file.name for file in beside if file.is_program} == set(PROGRAMS)


def test_a_profile_of_tuned_has_the_values_of_the_kernel() -> None:
    factors: dict[str, tuple[Level, Level]] = {
        **HOST,
        "storage.scheduler": ("none", "bfq"),
        "memory.huge_pages": ("off", "2M"),
    }
    [file] = files.tuned_profile(recipe(MARIADB, factors))
    told = text(file)
    assert "[sysfs]\n/sys/kernel/mm/transparent_hugepage/enabled=never\n" in told
    assert "elevator=bfq" in told and "[sysctl]\nvm.nr_hugepages=" in told
    assert files.tuned_profile(recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)})) == []


def test_a_role_of_ansible_has_the_same_files_at_the_same_places() -> None:
    made = recipe(MARIADB, {**HOST, "config.innodb_io_capacity": (200, 2000)})
    found = for_host(made, MARIADB)
    role = {file.name: text(file) for file in files.ansible_role(found.values(), made.service)}
    assert role["ansible/files/90-dyno.cnf"] == text(found["90-dyno.cnf"])
    for file in found.values():
        assert f'dest: "{file.place}"' in role["ansible/tasks/main.yml"]
        assert f'path: "{Path(file.place).parent}"' in role["ansible/tasks/main.yml"]
    assert '"mariadb"' in role["ansible/handlers/main.yml"]
    assert "systemd-tmpfiles --create" in role["ansible/handlers/main.yml"]


@pytest.mark.parametrize(
    ("marked", "taken"),
    [
        ("A = 1\n# begin dyno\nB = 1\n# end dyno\n", True),
        ("# begin dyno\nB = 1\n# begin dyno\nB = 1\n# end dyno\n", False),
        ("# end dyno\n# begin dyno\n", False),
        ("# begin dyno\nB = 1\n", False),
    ],
)
def test_a_role_keeps_what_was_there_and_refuses_a_file_without_one_pair_of_marks(
    tmp_path: Path, marked: str, taken: bool
) -> None:
    shared = RecipeFile("firebird.conf", b"B = 1\n", "/opt/firebird/firebird.conf", FilePlacement.FIRST)
    whole = RecipeFile("sysctl.conf", b"vm.nr_hugepages = 1\n", "/etc/sysctl.d/90-dyno.conf")
    role = {file.name: text(file) for file in files.ansible_role([shared, whole], "firebird")}
    tasks = role["ansible/tasks/main.yml"]
    assert tasks.count("backup: true") == 2 and tasks.count("dyno_place.stdout") == 1
    [line] = [line for line in tasks.splitlines() if line.startswith("    validate: ")]
    (tmp_path / "next").write_text(marked)
    command = shlex.split(json.loads(line.removeprefix("    validate: ")) % (tmp_path / "next"))
    assert (subprocess.run(command, check=False).returncode == 0) is taken


def said_of_units(folder: Path, drop_in: str) -> str:
    """What systemd says of a unit with a drop-in."""
    (folder / "mariadb.service.d").mkdir(parents=True)
    (folder / "mariadb.service").write_text("[Service]\nExecStart=/bin/true\n")
    (folder / "mariadb.service.d" / "90-dyno.conf").write_text(drop_in)
    command = ["systemd-analyze", "verify", "--man=no", str(folder / "mariadb.service")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.skipif(on_machine("systemd-analyze") is None, reason="needs systemd")
def test_systemd_knows_each_directive_of_a_drop_in(tmp_path: Path) -> None:
    if "NoSuchThing" not in said_of_units(tmp_path / "wrong", "[Service]\nNoSuchThing=1\n"):
        pytest.skip("systemd-analyze reads no units here")
    factors: dict[str, tuple[Level, Level]] = {
        **HOST,
        "cpu.quota": ("max", "150%"),
        "cpu.weight": (100, 200),
        "cpu.node": ("any", 0),
        "memory.malloc": ("default", "glibc.malloc.arena_max=2"),
        "memory.huge_pages": ("off", "2M"),
        "config.open_files_limit": (1000, 9000),
    }
    unit = for_host(recipe(MARIADB, factors), MARIADB)["systemd.conf"]
    said = said_of_units(tmp_path / "right", text(unit))
    assert "90-dyno.conf" not in said


@pytest.mark.skipif(on_machine("systemd-tmpfiles") is None, reason="needs systemd")
def test_systemd_writes_the_values_of_the_kernel(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("kernel/mm/transparent_hugepage/enabled", "devices/system/cpu/smt/control"):
        path = root / "sys" / name
        path.parent.mkdir(parents=True)
        # A file of the kernel's takes a value as a whole, another one keeps what is longer.
        path.touch()
    factors: dict[str, tuple[Level, Level]] = {**HOST, "cpu.smt": ("on", "off")}
    made = for_host(recipe(MARIADB, factors), MARIADB)["tmpfiles.conf"]
    (tmp_path / "dyno.conf").write_text(text(made))
    command = ["systemd-tmpfiles", "--create", f"--root={root}", str(tmp_path / "dyno.conf")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert (root / "sys/kernel/mm/transparent_hugepage/enabled").read_text().strip() == "never"
    assert (root / "sys/devices/system/cpu/smt/control").read_text().strip() == "off"


def test_a_build_is_left_to_a_person_where_the_variant_changes_it() -> None:
    made = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000)})
    build = DeployedBuild(
        key="ab12", words="", source="", patches=(), toolchain="", flags=Flags(), changed=True
    )
    assert "build" in by_hand(made.but(build=build), [])
    shared = build.but(changed=False)
    assert "build" not in by_hand(made.but(build=shared), [])


MADE = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000), "config.innodb_doublewrite": ("ON", "OFF")})


def files_of_folder() -> list[RecipeFile]:
    production = production_of(MARIADB)
    for_host = files_for_host(MADE, production)
    return [*for_host, *files_beside(MADE, production, for_host)]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    write_recipe_folder(folder, files_of_folder())
    assert read_recipe_folder(folder) == MADE
    assert read_recipe_folder(folder / "recipe.json") == MADE
    assert (folder / "apply").stat().st_mode & 0o111
    assert not (folder / "recipe.tsv").stat().st_mode & 0o111


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    with pytest.raises(UserError, match="is there already") as refused:
        write_recipe_folder(folder, files_of_folder())
    assert "--output" in refused.value.hint
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    below = tmp_path / "a file"
    below.write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_recipe_folder(below / "recipe", files_of_folder())
    too_long = RecipeFile("x" * 300, b"")
    with pytest.raises(UserError, match="cannot write"):
        write_recipe_folder(tmp_path / "recipe", [*files_of_folder(), too_long])
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is no recipe"), ("{}", "is no recipe"), ('{"format": 2, "run": 3}', "is no recipe")],
)
def test_what_is_no_recipe_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "recipe.json").write_text(text)
    with pytest.raises(UserError, match=said):
        read_recipe_folder(tmp_path)


def test_a_recipe_of_another_format_is_refused(tmp_path: Path) -> None:
    later = MADE.but(format=99)
    (tmp_path / "recipe.json").write_text(later.model_dump_json())
    with pytest.raises(UserError, match="has format 99"):
        read_recipe_folder(tmp_path)


@pytest.mark.parametrize(
    ("factor", "level", "said"),
    [
        ("nosuch.thing", 1, "does not know nosuch.thing"),
        ("memory.nosuch", 1, "does not know memory.nosuch"),
        ("config", 1, "does not know config"),
        ("cpu.server", "many", "'many' is no level of it"),
    ],
)
def test_a_level_that_no_layer_proves_is_refused(
    tmp_path: Path, factor: str, level: str | int, said: str
) -> None:
    change = MADE.changes[0].but(factor=factor, level=level)
    other = MADE.but(changes=(change,))
    (tmp_path / "recipe.json").write_text(other.model_dump_json())
    with pytest.raises(UserError, match=said):
        read_recipe_folder(tmp_path)


def test_where_there_is_none_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no recipe in"):
        read_recipe_folder(tmp_path)
