"""A server held against a recipe, by a database file: it needs no server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.deploy.check import Checked, LevelFinding, State, checked, found_server, is_file
from dbdyno.deploy.deployment import DeployedBuild, Deployment
from dbdyno.deploy.made import production_of
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import DriverFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.source.build import Flags
from tests.deploy.recipes import recipe
from tests.needs import on_machine

BUILD = DeployedBuild(
    key="k", words="gcc -O3", source="s", patches=(), toolchain="gcc", flags=Flags(), build_id="0" * 40
)


@pytest.fixture
def url(homes: Path) -> str:
    """A database in WAL mode, with pages of 8 KiB."""
    url = f"sqlite:///{homes}/data.sqlite"
    with LoadProcess({}, Launch()) as load:
        load.query(f"{url}?page_size=8192&journal_mode=wal", "VACUUM")
    return url


def made(factors: dict[str, tuple[Level, Level]], settings: dict[str, Level] | None = None) -> Deployment:
    return recipe(SQLITE, factors, settings)


def states(found: Checked) -> dict[str, State]:
    return {finding.factor: finding.state for finding in found.findings}


def one(found: Checked, factor: str) -> LevelFinding:
    return next(finding for finding in found.findings if finding.factor == factor)


def test_what_is_in_effect_and_what_differs_are_told(url: str) -> None:
    found = checked(made({"config.page_size": (4096, 8192)}), SQLITE, url, None)
    assert states(found) == {"version": State.IN_EFFECT, "config.page_size": State.IN_EFFECT}
    assert found.differing == ()
    found = checked(made({"config.page_size": (4096, 16384)}), SQLITE, url, None)
    [differing] = found.differing
    assert (differing.factor, differing.wanted, differing.found) == ("config.page_size", "16384", "8192")


def test_a_setting_of_the_applications_connections_is_unknown(url: str) -> None:
    factors: dict[str, tuple[Level, Level]] = {
        "config.synchronous": ("full", "normal"),
        "config.journal_mode": ("delete", "wal"),
    }
    found = checked(made(factors), SQLITE, url, None)
    assert one(found, "config.synchronous").state is State.UNKNOWN
    assert "on each of its connections" in one(found, "config.synchronous").reason
    assert one(found, "config.journal_mode").state is State.IN_EFFECT


def test_without_a_process_what_processes_show_is_unknown(url: str) -> None:
    deployment = made({"memory.allocator": ("libc", "jemalloc")})
    found = one(checked(deployment, SQLITE, url, None), "memory.allocator")
    assert found.state is State.UNKNOWN and "--pid" in found.reason


def test_the_process_is_asked_for_its_allocator(url: str) -> None:
    deployment = made({"memory.allocator": ("libc", "jemalloc")})
    found = one(checked(deployment, SQLITE, url, os.getpid()), "memory.allocator")
    assert (found.state, found.found) == (State.DIFFERS, "libc")
    assert (
        states(checked(made({"memory.allocator": ("jemalloc", "libc")}), SQLITE, url, os.getpid()))[
            "memory.allocator"
        ]
        is State.IN_EFFECT
    )


def test_the_disk_of_the_data_is_asked(url: str) -> None:
    found = checked(made({"storage.mount": ("defaults", "noatime,nosuid,nodev,ro")}), SQLITE, url, None)
    assert one(found, "storage.mount").state is State.DIFFERS
    found = checked(made({"storage.scheduler": ("none", "no-such-thing")}), SQLITE, url, None)
    assert one(found, "storage.scheduler").state is State.DIFFERS


def test_a_server_of_another_release_is_told(url: str) -> None:
    deployment = made({"config.page_size": (4096, 8192)}).but(version="2.8.17")
    assert one(checked(deployment, SQLITE, url, None), "version").state is State.DIFFERS


def test_levels_that_were_held_are_conditions(url: str) -> None:
    deployment = made({"config.page_size": (4096, 8192)}, {"config.encoding": "UTF-16le"})
    found = checked(deployment, SQLITE, url, None)
    assert [(each.factor, each.state) for each in found.conditions] == [("config.encoding", State.DIFFERS)]
    assert found.differing == ()
    whole = checked(deployment.but(whole=True), SQLITE, url, None)
    assert [each.factor for each in whole.differing] == ["config.encoding"]
    assert whole.conditions == ()


def test_another_build_is_told(url: str) -> None:
    deployment = made({"config.page_size": (4096, 8192)}).but(build=BUILD)
    assert one(checked(deployment, SQLITE, url, None), "build").state is State.UNKNOWN
    found = one(checked(deployment, SQLITE, url, os.getpid()), "build")
    assert found.state is (State.DIFFERS if on_machine("readelf") else State.UNKNOWN)


PRODUCTION = production_of(MARIADB)


def test_a_file_is_told_from_a_server() -> None:
    assert is_file("sqlite:///a/b.sqlite")
    assert not is_file("mysql://root@localhost/test")


def test_a_database_file_is_found_with_its_folder(homes: Path) -> None:
    url = f"sqlite:///{homes}/data.sqlite"
    with LoadProcess({}, Launch()) as load:
        load.query(url, "VACUUM")
    with found_server(url, os.getpid(), SQLITE, production_of(SQLITE), {}) as found:
        assert found.server.version.startswith("3.")
        assert found.knows_data
        assert found.setup.data == homes / "data.sqlite"
        assert os.getpid() in found.process_ids


def test_a_url_of_another_engine_is_refused(homes: Path) -> None:
    with (
        pytest.raises(UserError, match="for MariaDB, and the URL leads to sqlite"),
        found_server(f"sqlite:///{homes}/data.sqlite", None, MARIADB, PRODUCTION, {}),
    ):
        pass


def test_a_file_that_is_not_there_is_refused_and_not_made(homes: Path) -> None:
    with (
        pytest.raises(UserError, match="there is no database"),
        found_server(f"sqlite:///{homes}/data.sqlite", None, SQLITE, production_of(SQLITE), {}),
    ):
        pass
    assert not (homes / "data.sqlite").exists()


def test_what_does_not_answer_and_what_is_no_process_are_told(homes: Path) -> None:
    nowhere = f"mysql://root@localhost/test?socket={homes}/nothing"
    with pytest.raises(DriverFailed), found_server(nowhere, None, MARIADB, PRODUCTION, {}):
        pass
    with (
        pytest.raises(UserError, match="there is no process"),
        found_server(nowhere, 2**22 + 1, MARIADB, PRODUCTION, {}),
    ):
        pass
