"""Sources on this machine: folders, and revisions of a repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.obtain.source.tree import git_revision, local_tree, tree_digest


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.c").write_text("int a;\n")
    (folder / "configure").write_text("#!/bin/sh\n")
    (folder / "configure").chmod(0o755)
    (folder / "link").symlink_to("src/a.c")
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "src" / "a.c").write_text("int b;\n"),
        lambda folder: (folder / "src" / "a.c").rename(folder / "src" / "b.c"),
        lambda folder: (folder / "configure").chmod(0o644),
        lambda folder: (folder / "new").touch(),
        lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("configure")),
    ],
    ids=["content", "name", "mode", "file", "link"],
)
def test_each_change_of_a_folder_changes_its_digest(source: Path, change: Callable[[Path], object]) -> None:
    before = tree_digest(source)
    change(source)
    assert tree_digest(source) != before


def test_what_does_not_belong_to_the_source_does_not(source: Path) -> None:
    before = tree_digest(source)
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").touch()
    os.utime(source / "src" / "a.c", (0, 0))
    assert tree_digest(source) == before


def test_a_folder_is_laid_with_times_and_modes(source: Path, tmp_path: Path) -> None:
    os.utime(source / "src" / "a.c", (1000, 1000))
    (source / ".git").mkdir()
    found = local_tree(source)
    found.lay(tmp_path / "laid")
    assert tree_digest(tmp_path / "laid") == found.digest == tree_digest(source)
    assert (tmp_path / "laid" / "src" / "a.c").stat().st_mtime == 1000
    assert (tmp_path / "laid" / "link").is_symlink() and not (tmp_path / "laid" / ".git").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no source at"):
        local_tree(tmp_path / "nothing")


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(source: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    git(source, "init", "--quiet", "--initial-branch=main")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "first")
    git(source, "tag", "v1")
    (source / "src" / "a.c").write_text("int changed;\n")
    git(source, "commit", "--quiet", "-a", "-m", "second")
    return source


def test_a_revision_is_laid_as_it_was(repository: Path, tmp_path: Path) -> None:
    found = git_revision(repository, "v1")
    (repository / "src" / "a.c").write_text("not committed\n")
    found.lay(tmp_path / "laid")
    assert (tmp_path / "laid" / "src" / "a.c").read_text() == "int a;\n"
    assert os.access(tmp_path / "laid" / "configure", os.X_OK)
    assert "at v1 (" in found.title


def test_revisions_with_the_same_files_are_the_same_source(repository: Path) -> None:
    git(repository, "tag", "v1-again", "v1")
    assert git_revision(repository, "v1-again").digest == git_revision(repository, "v1").digest
    assert git_revision(repository, "main").digest != git_revision(repository, "v1").digest


def test_a_revision_that_is_not_there_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no revision v9"):
        git_revision(repository, "v9")
    with pytest.raises(UserError, match="has no revision v1"):
        git_revision(tmp_path, "v1")


def test_a_repository_with_submodules_is_refused_because_they_would_be_missing(repository: Path) -> None:
    (repository / ".gitmodules").write_text('[submodule "x"]\n')
    git(repository, "add", ".gitmodules")
    git(repository, "commit", "--quiet", "-m", "third")
    with pytest.raises(UserError, match="has submodules"):
        git_revision(repository, "main")
