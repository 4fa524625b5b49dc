"""A source's own tests run while its build folder is there, and what they say is kept with the build."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.host.cache import silently
from dbdyno.obtain.source.build import OwnTest
from dbdyno.obtain.source.commands import wrapper
from dbdyno.obtain.source.making import account_of, made
from dbdyno.obtain.source.own_tests import not_root
from dbdyno.obtain.source.recipe import Recipe
from tests.needs import needs_gcc
from tests.obtain.source.making_cases import materials

pytestmark = [pytest.mark.usefixtures("homes"), needs_gcc]


@pytest.fixture(autouse=True)
def unprivileged() -> None:
    if not_root() is None:
        pytest.skip("this kernel refuses a user namespace")


def outcomes(folder: Path, *steps: dict[str, object]) -> tuple[OwnTest, ...]:
    return account_of(made(materials(folder, tests=list(steps)), silently)).tests


def step(name: str, script: str, **more: object) -> dict[str, object]:
    return {"name": name, "command": ["sh", "-c", script], **more}


def test_tests_run_in_the_build_folder_until_one_fails(tmp_path: Path) -> None:
    found = outcomes(
        tmp_path,
        step("runs", "{prefix}/toy; test $? = 3 && touch here"),
        step("sees", "test -e here && echo 'not ok 4' && exit 7"),
        step("never", "true"),
    )
    assert [(one.name, one.verdict) for one in found] == [("runs", "passed"), ("sees", "failed")]
    assert found[1].detail == "sees: not ok 4"


@pytest.fixture(params=["whoever", "ordinary"])
def user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever runs the tests, and an ordinary user, who is root in the namespace without the network."""
    with monkeypatch.context() as changed:
        if request.param == "ordinary":
            changed.setattr(os, "geteuid", lambda: 65534)
        forget_the_kernel()
        if not_root() is None:
            pytest.skip("this kernel refuses a user namespace")
        yield
    forget_the_kernel()


def forget_the_kernel() -> None:
    for asked in (wrapper, not_root):
        asked.cache_clear()


def test_a_test_that_the_source_has_not_is_told_from_one_that_fails(tmp_path: Path) -> None:
    script = "echo \"ERROR: Could not find 'vector' in 'main' suite\"; exit 1"
    [found] = outcomes(tmp_path, step("runs", script, unknown="Could not find '([^']+)' in"))
    assert found.verdict == "unable" and found.holds_up
    assert found.detail.startswith("the source has no test vector: ")
    assert "`carried`" in found.detail


@pytest.mark.usefixtures("user")
def test_a_test_is_never_root(tmp_path: Path) -> None:
    [found] = outcomes(tmp_path, step("user", 'test "$(id -u)" != 0 && touch written'))
    assert found.verdict == "passed", f"{found.detail} as {os.geteuid()}"


LISTENS = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), timeout=60).close()
"""


@pytest.mark.usefixtures("user")
def test_a_server_of_a_test_can_listen_on_the_loopback(tmp_path: Path) -> None:
    [found] = outcomes(tmp_path, {"name": "listens", "command": [sys.executable, "-c", LISTENS]})
    assert found.verdict == "passed", found.detail


@pytest.mark.parametrize("needed", ["no-such-program", "no-such-header.h"])
def test_a_test_that_lacks_what_it_needs_has_not_passed(tmp_path: Path, needed: str) -> None:
    [found] = outcomes(tmp_path, step("perl", "true", needs={needed: "nsp"}))
    assert (found.verdict, f"needs {needed}" in found.detail) == ("unable", True)
    assert "apt-get install nsp" in found.detail


def test_headers_that_a_test_needs_are_not_taken_for_programs(tmp_path: Path) -> None:
    [found] = outcomes(tmp_path, step("header", "true", needs={"stdio.h": "libc6-dev"}))
    assert found.verdict == "passed"


def test_a_full_disk_fails_no_test(tmp_path: Path) -> None:
    [found] = outcomes(tmp_path, step("full", "echo 'write: No space left on device'; exit 1"))
    assert (found.verdict, "the disk is full" in found.detail) == ("unable", True)


FAILS = (
    "echo 'CURRENT_TEST: main.one'; echo 'error: of a test that passed'; echo 'CURRENT_TEST: main.two'; "
    "echo '@@ -1,2 +1,2 @@'; echo ' same'; echo '-4'; echo '+5'; echo; echo '+no part'; exit 1"
)


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        ("^CURRENT_TEST: (.*two)", "main.two: -4 | +5"),
        ("^CURRENT_TEST: (.*)", "main.one, main.two: -4 | +5"),
        ("^FAILED (.*)", "runs: error: of a test that passed"),
        ("", "runs: error: of a test that passed"),
    ],
)
def test_a_test_that_fails_is_named_with_what_it_answered(tmp_path: Path, failing: str, told: str) -> None:
    [found] = outcomes(tmp_path, step("runs", FAILS, failing=failing))
    assert (found.verdict, found.detail) == ("failed", told)


def test_what_differs_may_stand_in_a_file(tmp_path: Path) -> None:
    script = "printf '@@ -1 +1 @@\\n-x%0200d\\n+y\\n' 0 >differs; echo 'not ok 1 - types'; exit 1"
    [found] = outcomes(
        tmp_path, step("runs", script, failing="^not ok [0-9]+ - (.*)", differences="{build}/differs")
    )
    assert found.detail.startswith("types: -x000") and found.detail.endswith("0… | +y")


def test_a_test_without_a_difference_tells_its_first_error(tmp_path: Path) -> None:
    script = "echo 'error: earlier'; echo 'not ok 1 - types'; echo 'error: lost connection'; exit 1"
    [found] = outcomes(tmp_path, step("runs", script, failing="^not ok [0-9]+ - (.*)"))
    assert found.detail == "types: error: lost connection"


def test_tests_that_a_source_does_not_carry_are_left_out(tmp_path: Path) -> None:
    absent, there = outcomes(
        tmp_path, step("mtr", "exit 1", carried="mysql-test/main"), step("file", "true", carried="toy.c")
    )
    assert (absent.verdict, absent.detail) == ("absent", "not run: the source has no mysql-test/main")
    assert there.verdict == "passed"


def test_recipes_without_tests_have_the_key_that_they_had(tmp_path: Path) -> None:
    """Else all kept builds would be made again."""
    plain = materials(tmp_path).recipe
    assert "tests" not in plain.model_dump_json()
    with_tests = Recipe.model_validate({**plain.model_dump(), "tests": [step("a", "true")]})
    assert with_tests.digest != plain.digest
