"""What a build's command says of how far it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.host.cache import silently
from dbdyno.obtain.source.build import OwnTest
from dbdyno.obtain.source.commands import PROGRESS, commits_between, far_text, not_root, uncommitted, wrapper
from dbdyno.obtain.source.making import account_of, made
from dbdyno.obtain.source.recipe import Recipe
from tests.needs import needs_gcc
from tests.obtain.source.making_cases import materials
from tests.obtain.source.repositories import commit, git


@pytest.mark.parametrize(
    ("line", "took_s", "told"),
    [
        ("[120/480] Building C object", 60.0, ", 120 of 480, about 3 min left"),
        ("[ 50%] Building CXX object", 600.0, ", 50 %, about 10 min left"),
        ("[480/480] Linking", 600.0, ", 480 of 480"),
        ("[  0%] Built target gen", 11.0, ", 0 %"),
    ],
)
def test_what_is_left_follows_from_what_is_done(line: str, took_s: float, told: str) -> None:
    far = PROGRESS.search(line)
    assert far is not None and far_text(far, took_s) == told


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """one, two, three; and a merge of a branch with two commits."""
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "1\n", "one")
    commit(tmp_path, "1\n2\n", "two adds a line")
    git(tmp_path, "checkout", "-q", "-b", "branch")
    commit(tmp_path, "b\n", "side", "b.c")
    commit(tmp_path, "b\nb\n", "aside", "b.c")
    git(tmp_path, "checkout", "-q", "main")
    commit(tmp_path, "2\n", "three")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "four merges", "branch")
    return tmp_path


def test_commits_come_along_first_parents_with_what_they_change(repository: Path) -> None:
    found = commits_between(repository, "one", "HEAD")
    assert [each.title for each in found] == ["one", "two adds a line", "three", "four merges"]
    assert [[(one.path, one.added, one.removed) for one in each.touched] for each in found] == [
        [("a.c", 1, 0)],
        [("a.c", 1, 0)],
        [("a.c", 0, 1)],
        [("b.c", 2, 0)],
    ]


def test_a_file_without_lines_has_no_count(repository: Path) -> None:
    (repository / "c.bin").write_bytes(b"\0\1")
    commit(repository, "2\n3\n", "five")
    last = commits_between(repository, "three", "five")[-1]
    assert {one.path: one.added for one in last.touched} == {"a.c": 1, "c.bin": None}


def test_a_title_cannot_pass_for_a_commit(repository: Path) -> None:
    commit(repository, "9\n", "five \x01\x02 six\x01")
    found = commits_between(repository, "three", "HEAD")
    assert [each.title[:4] for each in found] == ["thre", "four", "five"]


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        ("two", "two", "are the same commit"),
        ("three", "one", "good and bad are exchanged"),
        ("side", "three", "is no ancestor of"),
        ("one", "none", "has no revision none"),
    ],
)
def test_ends_without_a_line_between_them_are_refused(
    repository: Path, good: str, bad: str, told: str
) -> None:
    with pytest.raises(UserError, match=told) as refused:
        commits_between(repository, good, bad)
    assert refused.value.hint


def test_histories_without_a_common_commit_are_refused(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    commit(repository, "0\n", "begin")
    with pytest.raises(UserError, match="no commit in common"):
        commits_between(repository, "one", "begin")


def test_what_is_not_committed_is_counted(repository: Path) -> None:
    assert uncommitted(repository) == 0
    (repository / "a.c").write_text("changed, and longer\n")
    (repository / "b.c").write_text("staged, and longer\n")
    git(repository, "add", "b.c")
    assert uncommitted(repository) == 2


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
