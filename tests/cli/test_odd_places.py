"""Places in which standard streams, the kernel's files or a path are not what they mostly are."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dbdyno.report.renderers import page
from tests.cli.calls import dyno
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


CALLS = """
import atexit, gc, importlib, json, os, sys
from pathlib import Path
from dbdyno.cli import main

folder = Path(sys.argv[1])

def note_modules():
    with (folder / "modules").open("a") as file:
        print(*(name for name in sys.modules if name.startswith("dbdyno.")), sep="\\n", file=file)

asked = json.loads((folder / "asked").read_text())
open_before = os.listdir("/proc/self/fd")
for name in asked["modules"]:
    importlib.import_module(name)
assert os.listdir("/proc/self/fd") == open_before, "a module keeps a file open in the place of a stream"
# Each process would bundle anew what draws figures.
if page := sys.modules.get("dbdyno.report.renderers.page"):
    page.vega = Path(asked["vega"]).read_text
# What was imported is no garbage, and each process would copy the pages in which it is looked at.
gc.freeze()
ended = []
for arguments in asked["calls"]:
    if (child := os.fork()) == 0:
        atexit.register(note_modules)
        sys.argv = ["dyno", *arguments]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended.append([code, *((folder / name).stat().st_size for name in ("stdout", "stderr"))])
(folder / "ended").write_text(json.dumps(ended))
"""
"""An interpreter that starts in a place, imports there what the verbs need, and forks for each call: to start
and to import takes most of a call's time. `test_start.py` says what a verb imports by itself."""

MODULES: list[str] = []
"""What verbs have imported so far, in the order of their first import."""


@pytest.fixture
def verbs(homes: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Verbs of all kinds, each with what it needs, by a word for each."""
    study, url = tmp_path / "own.toml", f"sqlite://{tmp_path / 'own.db'}"
    study.write_text(STUDY)
    assert dyno("load", "prepare", "tpcb", "--url", url).returncode == 0
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


def _called(
    calls: Mapping[str, list[str]], folder: Path, place: str = "{}"
) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
    """What the calls say in a place, by their words, one after another. None of them may end by a fault."""
    folder.mkdir()
    (folder / "vega.js").write_text(page.vega())
    asked = {"modules": MODULES, "calls": list(calls.values()), "vega": str(folder / "vega.js")}
    (folder / "asked").write_text(json.dumps(asked))
    words = shlex.join([sys.executable, "-c", CALLS, str(folder)])
    with (folder / "stdout").open("w") as output, (folder / "stderr").open("w") as errors:
        done = subprocess.run(
            ["sh", "-c", place.replace("{}", words)], stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
    texts = [(folder / name).read_bytes() for name in ("stdout", "stderr")]
    assert done.returncode == 0 and (folder / "ended").exists(), texts
    seen = dict.fromkeys([*MODULES, *(folder / "modules").read_text().split()])
    MODULES[:] = seen
    starts = [0, 0]
    for verb, (code, *ends) in zip(calls, json.loads((folder / "ended").read_text()), strict=True):
        output_text, errors_text = (
            text[start:end].decode(errors="replace")
            for text, start, end in zip(texts, starts, ends, strict=True)
        )
        starts = ends
        said = subprocess.CompletedProcess(calls[verb], code, output_text, errors_text)
        _no_fault(verb, said)
        yield verb, said


def _masked(masked: str) -> str:
    """A place with a mount namespace of its own, in which this was done."""
    if subprocess.run(["unshare", "-m", "sh", "-c", masked], capture_output=True).returncode != 0:
        skip_blocked("a mount namespace", "allow `unshare -m`")
    return f"exec unshare -m sh -c '{masked} && exec \"$@\"' sh {{}}"


def _no_fault(verb: str, said: subprocess.CompletedProcess[str]) -> None:
    told = said.stdout + said.stderr
    assert "a fault in Dyno" not in told and "Traceback" not in told and "Exception ignored" not in told, (
        verb,
        told,
    )


CLOSED = {"stdin": "{} <&-", "stdout": "{} >&-", "stderr": "{} 2>&-", "all": "{} <&- >&- 2>&-"}


@pytest.mark.parametrize("stream", list(CLOSED))
def test_a_closed_stream_is_one_that_nobody_reads(
    verbs: dict[str, list[str]], tmp_path: Path, stream: str
) -> None:
    for verb, said in _called(verbs, tmp_path / "calls", CLOSED[stream]):
        assert said.returncode == 0, (verb, said.returncode, said.stderr)


def test_output_that_finds_no_room_is_said_in_one_sentence(
    verbs: dict[str, list[str]], tmp_path: Path
) -> None:
    shown = {verb: verbs[verb] for verb in ("plan", "probe", "load", "engines", "config")}
    for verb, said in _called(shown, tmp_path / "calls", "{} >/dev/full"):
        assert "standard output cannot be written: No space left on device" in said.stderr, verb
        assert said.returncode == 1, verb


def test_messages_that_find_no_room_change_nothing(verbs: dict[str, list[str]], tmp_path: Path) -> None:
    for verb, said in _called(verbs, tmp_path / "calls", "{} 2>/dev/full"):
        assert said.returncode == 0, (verb, said.returncode)


@needs_root
@pytest.mark.parametrize("folder", ["/sys", "/sys/devices/system/cpu"])
def test_a_sandbox_may_hide_the_kernels_files(
    verbs: dict[str, list[str]], tmp_path: Path, folder: str
) -> None:
    for verb, said in _called(verbs, tmp_path / "calls", _masked(f"mount -t tmpfs none {folder}")):
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
    verbs: dict[str, list[str]], tmp_path: Path, file: str, refused: tuple[str, ...]
) -> None:
    """As containers do, with /dev/null. What cannot do without the file says so in a sentence."""
    chosen = {verb: verbs[verb] for verb in ("plan", "probe", "load", "run", "engines", "runs")}
    for verb, said in _called(chosen, tmp_path / "calls", _masked(f"mount --bind /dev/null {file}")):
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
    assert len(list(_called({" ".join(map(repr, call)): call for call in calls}, tmp_path / "calls"))) == 9


def test_no_file_of_the_folder_that_dyno_runs_in_is_a_module_of_it(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may write there, such as in `/tmp`, where jobs of Slurm begin."""
    for name in ("json", "ssl", "struct", "random"):
        (homes / f"{name}.py").write_text("raise SystemExit('planted')\n")
    (homes / "study.toml").write_text(STUDY)
    monkeypatch.chdir(homes)
    over = dyno("run", "study.toml", "--quiet")
    assert over.returncode == 0, over.stderr
    package = Path(__file__).parents[2] / "src" / "dbdyno"
    started = {
        f"{path.relative_to(package)}: {found}"
        for path in package.rglob("*.py")
        for found in re.findall(r'sys\.executable, "-\w+"', path.read_text())
    }
    assert len(started) > 6 and [one for one in started if one[-3:] not in ('-P"', '-I"')] == []
