"""What is said of a Keystone that does not start, and what its workers prove."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbdyno.applications.keystone import life
from dbdyno.applications.keystone.life import digest_of, locate
from dbdyno.applications.product import ApplicationPlace, Spent
from dbdyno.engines.server import ServerProcess, url_of
from dbdyno.errors import EngineMissing, ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence
from dbdyno.study.nouns import Application
from tests.applications.keystone.obtaining_cases import ALL, environment

PACKAGES = {"keystone": "30.0.0", "gunicorn": "27.0.1", "pymysql": "1.2.4"}
ROUNDS = "identity.password_hash_rounds"


@pytest.fixture
def place(tmp_path: Path) -> ApplicationPlace:
    return ApplicationPlace(
        tmp_path / "data", tmp_path / "runtime", url_of("mysql", tmp_path / "mariadb.sock")
    )


def installation(prefix: Path, **programs: str) -> Installation:
    """An environment whose programs are scripts of the shell."""
    (prefix / "bin").mkdir()
    for name, script in programs.items():
        program = prefix / "bin" / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    command = (str(prefix / "bin" / "gunicorn"),)
    return Installation("keystone", "30.0.0", str(prefix), prefix, command, digest_of(PACKAGES))


def test_what_a_command_of_keystone_says_last_is_told(tmp_path: Path, place: ApplicationPlace) -> None:
    failing = installation(tmp_path, keystone_manage="echo first >&2; echo 'no such table' >&2; exit 1")
    with pytest.raises(ServerFailed, match="Keystone's fernet_setup failed: no such table") as failed:
        life.populate(failing, Application(name="keystone"), place)
    assert failed.value.log == "first\nno such table\n"


def test_a_command_of_keystone_that_hangs_or_is_missing_is_told(
    tmp_path: Path, place: ApplicationPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerFailed, match=r"fernet_setup cannot be started: .*No such file") as missing:
        life.populate(installation(tmp_path), Application(name="keystone"), place)
    assert str(tmp_path) in missing.value.hint
    shutil.rmtree(place.data)
    (tmp_path / "bin").rmdir()
    monkeypatch.setattr(life, "MANAGE_S", 0.1)
    hanging = installation(tmp_path, keystone_manage="exec sleep 600")
    with pytest.raises(ServerFailed, match=r"fernet_setup did not end within 0.1 s"):
        life.populate(hanging, Application(name="keystone"), place)


def test_the_keys_are_for_nobody_else(tmp_path: Path, place: ApplicationPlace) -> None:
    life.populate(installation(tmp_path, keystone_manage="exit 0"), Application(name="keystone"), place)
    folders = [place.data, *(place.data / name for name in life.KEY_FOLDERS)]
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700] * 3


def test_an_application_that_does_not_start_says_why(tmp_path: Path, place: ApplicationPlace) -> None:
    lacking = installation(tmp_path, gunicorn="echo '[7] [ERROR] Exception in worker process'; exit 3")
    with pytest.raises(
        ServerFailed, match=r"exit code 3 while it was starting.*Exception in worker"
    ) as failed:
        life.start(lacking, Application(name="keystone"), place)
    assert "[application] settings" in failed.value.hint


def test_only_lines_of_errors_are_problems() -> None:
    log = "1 INFO keystone [-] ready\n2 WARNING keystone [-] ERRORS are rare\n3 ERROR keystone [-] oh\n"
    assert life.problems(log) == ["3 ERROR keystone [-] oh"]


def proofs(
    place: ApplicationPlace, wish: Application, *workers: Mapping[str, Level | None]
) -> dict[str, Evidence]:
    """By name, where each of the workers has told these settings."""
    place.runtime.mkdir()
    connected = {"database.connection": life.connection(place.database_url)}
    for number, settings in enumerate(workers, 2):
        told = {"packages": PACKAGES, "settings": {**connected, **settings}}
        (place.runtime / f"told-{number}.json").write_text(json.dumps(told))
    running: Any = SimpleNamespace(process_ids=tuple(range(1, len(workers) + 2)))
    here = Installation("keystone", "30.0.0", "", Path(), (), digest_of(PACKAGES))
    found = life.prove(cast(ServerProcess, running), here, wish, place)
    return {one.factor.removeprefix("application."): one for one in found}


def test_workers_that_have_what_was_asked_prove_it(place: ApplicationPlace) -> None:
    wish = Application(name="keystone", workers=2, settings={ROUNDS: 4, "cache.enabled": False})
    found = proofs(place, wish, *[{ROUNDS: 4, "cache.enabled": False}] * 2)
    assert all(one.in_effect for one in found.values()), found
    assert {"version", "packages", "workers", "database.connection", ROUNDS} <= found.keys()


def test_a_setting_that_one_worker_lacks_or_nobody_knows_is_not_in_effect(place: ApplicationPlace) -> None:
    wish = Application(name="keystone", workers=3, settings={ROUNDS: 4, "cache.enabld": True})
    found = proofs(place, wish, {ROUNDS: 4, "cache.enabld": None}, {ROUNDS: 12, "cache.enabld": None})
    assert not found["workers"].in_effect and "2" in found["workers"].reason
    assert not found[ROUNDS].in_effect and "12 / 4" in found[ROUNDS].reason
    assert "no such setting" in found["cache.enabld"].reason


def test_what_workers_have_spent_is_summed_over_all_that_ever_told(place: ApplicationPlace) -> None:
    place.runtime.mkdir()
    assert life.spent(place) is None
    for name, totals in (("spent-7", (3.0, 0.5, 0.25)), ("spent-8", (1.0, 0.25, 0.0))):
        (place.runtime / name).write_bytes(life.TOTALS.pack(*totals))
    (place.runtime / "spent-9.making").write_bytes(b"")
    assert life.spent(place) == Spent(4.0, 0.75, 0.25)


def test_an_environment_that_is_named_is_taken_with_all_its_packages(tmp_path: Path) -> None:
    one = locate(Application(name="keystone", path=str(environment(tmp_path / "one", ALL))))
    assert (one.version, one.command) == ("30.0.0", (str(tmp_path / "one" / "bin" / "gunicorn"),))
    other = locate(
        Application(name="keystone", path=str(environment(tmp_path / "two", {**ALL, "SQLAlchemy": "2.0.1"})))
    )
    assert other.digest != one.digest


def test_the_cache_is_searched_for_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shelf = tmp_path / "dyno" / "applications"
    environment(shelf / "keystone-30.0.0", ALL)
    for older in ("9.0.0", "29.0.0"):
        environment(shelf / f"keystone-{older}", {**ALL, "keystone": older})
    assert locate(Application(name="keystone")).version == "30.0.0"
    assert locate(Application(name="keystone", version="29")).version == "29.0.0"
    with pytest.raises(EngineMissing, match="Keystone 28 is not on this machine") as missing:
        locate(Application(name="keystone", version="28"))
    assert "pip install keystone==28 gunicorn PyMySQL" in missing.value.hint


def test_what_an_interrupted_pip_left_behind_is_no_package(tmp_path: Path) -> None:
    whole = locate(Application(name="keystone", path=str(environment(tmp_path, ALL))))
    (tmp_path / "lib" / "python3.11" / "site-packages" / "~ip-24.0.dist-info").mkdir()
    assert locate(Application(name="keystone", path=str(tmp_path))) == whole


def test_what_lacks_its_server_says_how_to_add_it(tmp_path: Path) -> None:
    lacking = environment(tmp_path, {"keystone": "30.0.0", "PyMySQL": "1.2.4"})
    with pytest.raises(EngineMissing, match="lacks its server") as missing:
        locate(Application(name="keystone", path=str(lacking)))
    assert "gunicorn" in missing.value.hint
