"""`dyno bisect` refuses ends between which there is no line, before it builds anything."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from dbdyno.engines.sqlite.server import LIBRARY
from dbdyno.host import cache, fingerprint
from tests.cli.calls import complaint, dyno
from tests.needs import on_machine
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


VERSIONS = """
title  = "Which version?"
images = 1
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[factors]
engine = [{levels}]
[settings]
"config.synchronous"  = "OFF"
"config.journal_mode" = "MEMORY"
"""

SLOWED = """
#define _GNU_SOURCE
#include <dlfcn.h>
int sqlite3_step(void *statement) {
    static int (*host_step)(void *);
    if (!host_step) host_step = (int (*)(void *))dlsym(dlopen("{host}", RTLD_LAZY), "sqlite3_step");
    int code = host_step(statement);
    if (code == 101) for (volatile int number = 0; number < {loops}; number++);
    return code;
}
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
        (("--resume", "--good", "c1"), "exclude each other"),
        (("--versions", "--settings"), "--settings and --versions exclude each other"),
        (("--resume", "--versions"), "--versions and --resume exclude each other"),
        (("--versions",), "builds its engine (`source.origin`)"),
        (("--statements", "--versions"), "has the workload `tpcb`"),
        (("--engines", "nowhere"), "nowhere is no folder"),
        (("--engines", "nowhere", "--settings"), "--settings and --engines exclude each other"),
    ],
)
def test_ends_that_are_none_are_refused_before_anything_is_built(
    study: Path, ends: tuple[str, ...], told: str
) -> None:
    assert told in complaint("bisect", str(study), *ends)
    assert "no builds" in dyno("cache", "builds").stderr


def _slowed(folder: Path, name: str, loops: int) -> str:
    """The level of a library that loops so often at the end of each statement."""
    host = fingerprint.find(LIBRARY)
    if host is None or on_machine("gcc") is None:
        pytest.skip("needs gcc and the host's libsqlite3")
    code, library = folder / f"{name}.c", folder / name / LIBRARY
    code.write_text(SLOWED.replace("{host}", str(host)).replace("{loops}", str(loops)))
    library.parent.mkdir()
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, code, "-Wl,--no-as-needed", host], check=True)
    return f"sqlite:{library}"


def test_versions_stand_beside_both_ends_and_each_has_data_of_its_own(homes: Path) -> None:
    levels = [_slowed(homes, name, loops) for name, loops in (("a", 0), ("b", 1), ("c", 20_000))]
    path = homes / "study.toml"
    path.write_text(VERSIONS.replace("{levels}", ", ".join(f'"{level}"' for level in levels)))
    said = dyno("bisect", str(path), "--versions", "--blocks", "6", "--seed", "1", "--quiet", "--json")
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    # On a noisy host the middle may stay open, but the ends are far apart.
    assert found["answer"] in ("found", "range") and found["bad"] == 2
    assert [one["place"] for one in found["placed"]] == [0, 1, 2]
    assert [point["name"] for point in found["run"]["line"]["points"]] == [f"{at}/{LIBRARY}" for at in "abc"]
    assert found["engines"]["same_rows"] == levels[1:]
    # What confirms an answer has images of its own.
    assert len(cache.shelf("pristine").names()) >= len(levels)


def test_a_study_without_a_repository_is_refused(study: Path) -> None:
    study.write_text(STUDY.replace('"fork"', '"debian"'))
    assert "names no git repository" in complaint("bisect", str(study), "--good", "a", "--bad", "b")
