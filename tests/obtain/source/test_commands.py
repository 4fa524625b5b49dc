"""What a build's command says of how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.obtain.source.commands import PROGRESS, commits_between, far_text, uncommitted
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
