"""`dyno cache`, and what `dyno cleanup` sees of makings that were killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbdyno.host import cache, paths
from dbdyno.host.cache import ACCOUNT
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid


def keep(kind: str, name: str, within: Path | None = None, days: float = 0.0) -> Path:
    """Puts a thing on a shelf that was last used some days ago."""

    def make(making: Path) -> tuple[str, str]:
        (making / "content").write_bytes(bytes(1 << 20))
        for marker in cache.WHOLE.values():
            (making / marker).write_text("{}")
        return f"{kind} of a test", "the test"

    folder = cache.shelf(kind, within).once(name, make)
    cache.release()
    used = time.time() - days * 86_400.0
    os.utime(folder / cache.WHOLE.get(kind, ACCOUNT), (used, used))
    return folder


@pytest.fixture
def kept(homes: Path) -> dict[str, Path]:
    data = keep("pristine", "abc123", days=10)
    return {
        "engine": keep("engines", "toy-1.2-aaaa", days=100),
        "data": data,
        "image": keep("volumes", "ext4-1-abc", within=data, days=40),
        "vectors": keep("vectors", "ffff0000"),
    }


def test_everything_that_is_kept_is_listed_with_its_size(kept: dict[str, Path]) -> None:
    listed = dyno("cache", "list").stdout
    for words in (
        "toy-1.2-aaaa",
        "abc123",
        "ext4-1-abc",
        "ffff0000",
        "engines: 1, 1.0",
        " MiB",
        "in all: 4.",
    ):
        assert words in listed
    told = dyno("cache", "list", "--json").stdout
    require_valid("cache-list", told)
    document = json.loads(told)
    assert {thing["name"]: thing["kind"] for thing in document["things"]} == {
        "toy-1.2-aaaa": "engines",
        "abc123": "pristine",
        "ext4-1-abc": "volumes",
        "ffff0000": "vectors",
    }
    assert document["total_bytes"] == sum(thing["size_bytes"] for thing in document["things"])
    assert all(thing["used_unix_s"] > 0 for thing in document["things"])


def test_the_list_breaks_no_word_at_80_columns(
    kept: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = dyno("cache", "list").stdout
    assert "engines of a test; the test" in [line.strip() for line in listed.splitlines()]
    assert all(len(line) <= 80 for line in listed.splitlines())


@pytest.mark.parametrize(
    ("choice", "gone"),
    [
        (["toy-1.2-aaaa"], {"engine"}),
        (["toy"], {"engine"}),
        (["ffff", "toy"], {"engine", "vectors"}),
        (["abc123"], {"data", "image"}),
        (["--kind", "volumes"], {"image"}),
        (["--older-than", "30d"], {"engine", "image"}),
        (["--older-than", "30d", "--kind", "engines"], {"engine"}),
        (["--all"], {"engine", "data", "image", "vectors"}),
    ],
    # A set has another order in each process.
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)
def test_what_is_chosen_is_freed_and_nothing_else(
    kept: dict[str, Path], choice: list[str], gone: set[str]
) -> None:
    said = dyno("cache", "free", *choice, "--dry-run")
    assert said.returncode == 0
    assert "would free" in said.stdout
    assert all(path.exists() for path in kept.values())
    assert dyno("cache", "free", *choice).returncode == 0
    assert {name for name, path in kept.items() if not path.exists()} == gone


def test_what_a_process_uses_stays(kept: dict[str, Path]) -> None:
    take = "cache.shelf('engines').take('toy-1.2-aaaa')"
    code = f"from dbdyno.host import cache; {take}; print('taken', flush=True); input()"
    user = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert user.stdout is not None
    assert user.stdout.readline()
    said = dyno("cache", "free", "--all")
    assert said.returncode == 0
    assert "kept engines toy-1.2-aaaa, because a running dyno uses it" in said.stderr
    assert [name for name, path in kept.items() if path.exists()] == ["engine"]
    assert dyno("cache", "free", "toy").returncode == 1
    user.communicate("\n")
    assert dyno("cache", "free", "toy").returncode == 0


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ([], "no name, kind or age"),
        (["toy", "--all"], "in one way"),
        (["nosuch"], "nothing that is kept is called 'nosuch'"),
        (["--older-than", "soon"], "12h, 30d, 4w"),
        (["--kind", "nosuch"], "nosuch"),
    ],
    ids=str,
)
def test_a_choice_that_is_none_frees_nothing(kept: dict[str, Path], choice: list[str], message: str) -> None:
    assert message in complaint("cache", "free", *choice)
    assert all(path.exists() for path in kept.values())


def test_a_beginning_that_several_names_have_is_refused(kept: dict[str, Path]) -> None:
    keep("engines", "toy-1.3-bbbb")
    assert "2 names begin with 'toy'" in complaint("cache", "free", "toy")


def test_an_empty_cache(homes: Path) -> None:
    assert "nothing is kept" in dyno("cache", "list").stderr
    assert json.loads(dyno("cache", "list", "--json").stdout) == {"things": [], "total_bytes": 0}
    assert dyno("cache", "free", "--all").returncode == 0


def test_cleanup_removes_what_a_killed_making_left(homes: Path) -> None:
    left = paths.cache() / "engines" / "toy-trixie.making"
    left.mkdir(parents=True)
    (left / "half").write_bytes(bytes(1000))
    said = dyno("cleanup")
    assert str(left) in said.stdout
    assert not left.exists()
    assert "nothing was left behind" in dyno("cleanup").stderr
