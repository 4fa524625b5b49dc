"""`dyno bisect` refuses ends between which there is no line, before it builds anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import complaint, dyno
from tests.sqlite_fork import make_fork

STUDY = """
title  = "Which commit?"
engine = "sqlite"
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[settings]
"config.synchronous"  = "OFF"
"config.journal_mode" = "MEMORY"
"source.origin"       = "fork"
"source.recipe"       = "recipe.toml"
"build.optimisation"  = "-O0"
[goal]
margin = "5%"
"""


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def study(homes: Path) -> Path:
    """A study beside a repository with the commits c0, c1 and c2."""
    make_fork(homes)
    git(homes / "fork", "init", "-q")
    for number in range(3):
        (homes / "fork" / "note").write_text(str(number))
        git(homes / "fork", "add", "-A")
        git(homes / "fork", "commit", "-m", f"Change number {number}")
        git(homes / "fork", "tag", f"c{number}")
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (("--good", "c1", "--bad", "c1"), "are the same commit"),
        (("--good", "c2", "--bad", "c1"), "are exchanged"),
        (("--good", "c1", "--bad", "c99"), "has no revision c99"),
        (("--good", "c1"), "needs two ends"),
        (("--settings",), "has no two configurations"),
        (("--resume", "--good", "c1"), "contradict each other"),
    ],
)
def test_ends_that_are_none_are_refused_before_anything_is_built(
    study: Path, ends: tuple[str, ...], told: str
) -> None:
    assert told in complaint("bisect", str(study), *ends)
    assert "no builds" in dyno("builds").stderr


def test_a_study_without_a_repository_is_refused(study: Path) -> None:
    study.write_text(STUDY.replace('"fork"', '"debian"'))
    assert "names no git repository" in complaint("bisect", str(study), "--good", "a", "--bad", "b")
