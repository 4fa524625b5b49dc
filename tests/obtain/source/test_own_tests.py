"""A source's own tests run while its build folder is there, and what they say is kept with the build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbdyno.host.once import silently
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import OwnTest
from dbdyno.obtain.source.making import account_of, made
from dbdyno.obtain.source.own_tests import not_root
from dbdyno.obtain.source.recipe import Recipe
from tests.needs import needs_gcc
from tests.obtain.source.test_making import materials

pytestmark = [pytest.mark.usefixtures("homes"), needs_gcc]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_failures", {})
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


def test_a_test_is_never_root(tmp_path: Path) -> None:
    [found] = outcomes(tmp_path, step("user", 'test "$(id -u)" != 0 && touch written'))
    assert found.verdict == "passed", f"{found.detail} as {os.geteuid()}"


def test_a_test_that_cannot_run_here_has_not_passed(tmp_path: Path) -> None:
    [found] = outcomes(tmp_path, step("perl", "true", needs={"no-such-program": "nsp"}))
    assert (found.verdict, "apt-get install nsp" in found.detail) == ("unable", True)


def test_recipes_without_tests_have_the_key_that_they_had(tmp_path: Path) -> None:
    """Else all kept builds would be made again."""
    plain = materials(tmp_path).recipe
    assert "tests" not in plain.model_dump_json()
    with_tests = Recipe.model_validate({**plain.model_dump(), "tests": [step("a", "true")]})
    assert with_tests.digest != plain.digest
