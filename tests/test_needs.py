"""Tests begin with surroundings of their own, whatever the machine and its user have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.conftest import DYNO
from tests.needs import TAKEN, needs_ascii_path

TESTS = Path(__file__).parent
SUITE = """
import os, time
from pathlib import Path

from dbdyno.driver.passwords import MY_CNF
from dbdyno.engines.registry import ENGINES
from dbdyno.host import paths

def test_what_stays():
    assert os.environ["https_proxy"] == "http://proxy:3128"

def test_nothing_of_the_users_is_seen():
    mine = Path(os.environ["PIP_USERS"])
    places = (Path.home(), paths.data_place(), paths.host_place())
    assert not any(place.is_relative_to(mine) for place in places)
    assert not MY_CNF.expanduser().exists()
    assert {"LC_ALL", "PGPASSWORD", "EDITOR", "CI", "PYTHONDONTWRITEBYTECODE"}.isdisjoint(os.environ)
    assert (os.environ["LANG"], time.tzname[0]) == ("C.UTF-8", "UTC")

def test_what_is_fetched_is_kept_apart():
    mine = Path(os.environ["PIP_USERS"])
    assert paths.cache_place() == mine / "cache" / "dyno-tests" / "dyno"

def test_no_server_of_the_host_is_seen():
    for name in ("mariadb", "mysql"):
        assert not any(offer.present for offer in ENGINES[name].obtaining.offers())
"""


@needs_ascii_path
def test_surroundings_are_the_tests_own(tmp_path: Path) -> None:
    home = tmp_path / "ein ü"
    suite = tmp_path / "suite"
    for folder in (home, suite):
        folder.mkdir()
    (home / ".my.cnf").write_text("[client]\npassword=users\n")
    (suite / "conftest.py").write_text("from tests.conftest import *\n")
    (suite / "test_suite.py").write_text(SUITE)
    users = {
        "HOME": str(home),
        "PATH": f"{home}:{os.environ['PATH']}",
        "PIP_USERS": str(home),
        "PYTHONPATH": str(TESTS.parent),
        "https_proxy": "http://proxy:3128",
        "LANG": "tr_TR.UTF-8",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Kolkata",
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "PGPASSWORD": "users",
        "EDITOR": "ed",
        "CI": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", suite, suite],
        env=users,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert not (home / "data").exists() and not Path(os.environ[TAKEN]).is_relative_to(home)


@pytest.mark.parametrize("arguments", [("config",), ("plan", "nowhere.toml")], ids=" ".join)
def test_a_warm_command_says_and_ends_as_one_that_starts(homes: Path, arguments: tuple[str, ...]) -> None:
    started = subprocess.run([*DYNO, *arguments], capture_output=True, text=True, cwd=homes)
    found = warm.run(*arguments, cwd=homes)
    told = (started.returncode, started.stdout, started.stderr)
    assert (found.returncode, found.stdout, found.stderr) == told


def test_a_warm_command_reads_its_input_and_dies_by_itself(homes: Path) -> None:
    """The other commands that were forked go on."""
    command = ("load", "run", "tpcb", "--url", "@/dev/stdin")
    killed, other = (warm.Process(*command, stdin=subprocess.PIPE) for _ in range(2))
    killed.kill()
    assert killed.wait(60.0) == -9 and other.poll() is None
    assert other.stdin is not None
    other.stdin.close()
    assert other.wait(60.0) == 2
