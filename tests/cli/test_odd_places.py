"""Places in which standard streams, the kernel's files or a path are not what they mostly are."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.conftest import DYNO
from tests.needs import needs_root, skip_blocked

STUDY = """
title  = "Which page size?"
engine = "sqlite"
blocks = 1
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[factors]
"config.cache_size" = [-2000, -4000]
"""


@pytest.fixture
def verbs(homes: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Verbs of all kinds, each with what it needs, by a word for each."""
    study, url = tmp_path / "own.toml", f"sqlite://{tmp_path / 'own.db'}"
    study.write_text(STUDY)
    subprocess.run([*DYNO, "load", "prepare", "tpcb", "--url", url], check=True, capture_output=True)
    return {
        "plan": ["plan", str(study)],
        "probe": ["probe"],
        "load": ["load", "run", "tpcb", "--url", url, "--warmup", "0", "--time", "0.2"],
        "run": ["run", str(study)],
        "report": ["report"],
        "runs": ["runs"],
        "engines": ["engines"],
        "init": ["init", "sqlite", "-o", str(tmp_path / "made.toml")],
        "config": ["config"],
        "cache": ["cache"],
        "cleanup": ["cleanup"],
    }


def _called(command: str, arguments: list[str], place: str) -> subprocess.CompletedProcess[str]:
    words = shlex.join([*DYNO, *arguments])
    return subprocess.run(
        ["sh", "-c", place.format(words)], capture_output=True, text=True, errors="replace", timeout=300
    )


def _no_fault(verb: str, said: subprocess.CompletedProcess[str]) -> None:
    told = said.stdout + said.stderr
    assert "a fault in Dyno" not in told and "Traceback" not in told and "Exception ignored" not in told, (
        verb,
        told,
    )


CLOSED = {"stdin": "{} <&-", "stdout": "{} >&-", "stderr": "{} 2>&-", "all": "{} <&- >&- 2>&-"}


@pytest.mark.parametrize("stream", list(CLOSED))
def test_a_closed_stream_is_one_that_nobody_reads(verbs: dict[str, list[str]], stream: str) -> None:
    for verb, arguments in verbs.items():
        said = _called(verb, arguments, CLOSED[stream])
        _no_fault(verb, said)
        assert said.returncode == 0, (verb, said.returncode, said.stderr)


def test_output_that_finds_no_room_is_said_in_one_sentence(verbs: dict[str, list[str]]) -> None:
    for verb in ("plan", "probe", "load", "engines", "config"):
        said = _called(verb, verbs[verb], "{} >/dev/full")
        _no_fault(verb, said)
        assert "standard output cannot be written: No space left on device" in said.stderr, verb
        assert said.returncode == 1, verb


def test_messages_that_find_no_room_change_nothing(verbs: dict[str, list[str]]) -> None:
    for verb, arguments in verbs.items():
        said = _called(verb, arguments, "{} 2>/dev/full")
        _no_fault(verb, said)
        assert said.returncode == 0, (verb, said.returncode)


@needs_root
@pytest.mark.parametrize("folder", ["/sys", "/sys/devices/system/cpu"])
def test_a_sandbox_may_hide_the_kernels_files(verbs: dict[str, list[str]], folder: str) -> None:
    masked = f"mount -t tmpfs none {folder}"
    if subprocess.run(["unshare", "-m", "sh", "-c", masked], capture_output=True).returncode != 0:
        skip_blocked("a mount namespace", "allow `unshare -m`")
    for verb, arguments in verbs.items():
        place = f"unshare -m sh -c {shlex.quote(masked + ' && exec ' + shlex.join([*DYNO, *arguments]))}"
        said = _called(verb, arguments, place.replace("{", "{{").replace("}", "}}"))
        _no_fault(verb, said)
        assert said.returncode == 0, (verb, said.stderr)


@needs_root
@pytest.mark.parametrize(
    ("file", "refused"),
    {
        "/proc/cpuinfo": (),
        "/proc/filesystems": (),
        "/proc/meminfo": ("plan", "run"),
        "/proc/stat": ("run",),
        "/proc/sys/kernel/overflowuid": (),
        "/proc/sys/kernel/random/boot_id": ("probe", "load", "run"),
    }.items(),
)
def test_a_sandbox_may_put_an_empty_file_over_one_of_the_kernels(
    verbs: dict[str, list[str]], file: str, refused: tuple[str, ...]
) -> None:
    """As containers do, with /dev/null. What cannot do without the file says so in a sentence."""
    masked = f"mount --bind /dev/null {file}"
    if subprocess.run(["unshare", "-m", "sh", "-c", masked], capture_output=True).returncode != 0:
        skip_blocked("a mount namespace", "allow `unshare -m`")
    for verb in ("plan", "probe", "load", "run", "engines", "runs"):
        place = f"unshare -m sh -c {shlex.quote(masked + ' && exec ' + shlex.join([*DYNO, *verbs[verb]]))}"
        said = _called(verb, verbs[verb], place.replace("{", "{{").replace("}", "}}"))
        _no_fault(verb, said)
        assert (said.returncode != 0) is (verb in refused), (verb, said.stdout, said.stderr)
        assert verb not in refused or f"{file} " in said.stderr, (verb, said.stderr)


def test_a_path_that_is_not_utf_8_is_a_path(homes: Path, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe9\xff"))
    folder.mkdir()
    study, script, database = folder / "own.toml", folder / "own.sql", folder / "own.db"
    study.write_text(STUDY)
    script.write_text("SELECT 1;\n")
    database.touch()
    url = ["--url", f"sqlite://{tmp_path / 'utf8.db'}"]
    (tmp_path / "utf8.db").touch()
    short = ["--warmup", "0", "--time", "0.2"]
    calls = [
        ["plan", str(study)],
        ["run", str(study)],
        ["load", "run", str(script), *url, *short],
        ["load", "run", "tpcb", "--url", f"sqlite://{database}", *short],
        ["report", "--html", str(folder / "page.html")],
        ["init", "sqlite", "-o", str(folder / "made.toml")],
        ["import", "pgbench", str(folder / "none.log")],
        ["verify", str(folder)],
        ["recipe", "check", str(folder)],
    ]
    for call in calls:
        said = subprocess.run([*DYNO, *call], capture_output=True, text=True, errors="replace", timeout=300)
        _no_fault(" ".join(map(repr, call)), said)
