"""The rules of the house that no linter knows. Each test says which invariant it keeps."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dbdyno"

STAGES = {"prepare", "verify", "observe", "drive", "check"}
"""The stages of a trial. Only `run` and the command line know their order."""

PARTS_OF_STAGES = {"pristine", "placement"}
"""What a stage is made of; no business of any other stage."""

SPINE = {"run", "cli"}

LINES_MAX = 600
CLI_LINES_MAX = 400

FORBIDDEN_NAMES = re.compile(r"(^|_)(util|utils|helper|helpers|manager|service|misc|common|v2)(_|$|\.)")

MACHINE_PATHS = re.compile(r"(?<![\w.])/(root|home/\w+|work|tmp/(?!dyno-)\w[\w-]*)/")
"""Paths that exist on the author's machine only. Dyno's own `/tmp/dyno-UID` is not one."""


@cache
def tracked(*endings: str) -> tuple[Path, ...]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (ROOT / line for line in listed.splitlines())
    return tuple(path for path in paths if path.name.endswith(endings) and path.is_file())


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """`src/dbdyno/trial/observe/window.py` -> `trial.observe.window`"""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_of(path: Path) -> set[str]:
    """What a module imports of Dyno, as names below `dbdyno`, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "dbdyno":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dbdyno."):
            module = node.module.removeprefix("dbdyno.")
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {n.name.removeprefix("dbdyno.") for n in node.names if n.name.startswith("dbdyno.")}
    return found


def top(name: str) -> str:
    """The room of a module; a trial's own parts are told apart."""
    return name.removeprefix("trial.").split(".", 1)[0]


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_stages_import_nouns_and_never_another_stage(path: Path) -> None:
    own = top(name_of(path))
    if own in SPINE:
        return
    others = {top(name) for name in imports_of(path)} & STAGES - {own}
    assert others == set(), f"{name_of(path)} must not know the stages {sorted(others)}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_the_spine_and_the_stage_know_a_stages_parts(path: Path) -> None:
    own = top(name_of(path))
    used = {top(name) for name in imports_of(path)} & PARTS_OF_STAGES - {own}
    allowed = own in {"prepare", "pristine", "placement"} | SPINE
    assert allowed or used == set(), f"{name_of(path)} must not use {sorted(used)}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_the_command_line_prints(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # A module that runs as a process of its own speaks on its standard output.
    if (
        top(name_of(path)) in {"cli", "report"}
        or name_of(path) == "host.interrupts"
        or '__name__ == "__main__"' in text
    ):
        return
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert calls == []


PURE_FORBIDDEN = {"engines.registry", "obtain", "records.store", "driver", "drive", "host", "layers"}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in modules()
        if top(name_of(path)) in {"analyse", "report"} or name_of(path) == "records.metrics"
    ],
    ids=name_of,
)
def test_analysis_and_report_need_no_database(path: Path) -> None:
    used = {name for name in imports_of(path) if name in PURE_FORBIDDEN or top(name) in PURE_FORBIDDEN}
    engines = {name for name in imports_of(path) if name.startswith("engines.") and "base" not in name}
    assert used | engines == set()


@pytest.mark.parametrize("path", [path for path in modules() if top(name_of(path)) == "analyse"], ids=name_of)
def test_analysis_is_pure(path: Path) -> None:
    """No clock, no file, no chance: the same records give the same analysis for ever."""
    impure = {"time", "datetime", "random", "os", "pathlib", "subprocess", "socket", "secrets"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} & impure == set()


def test_what_an_engine_is_called_is_known_to_engines_alone() -> None:
    """No `if engine == "..."` outside `engines/`, `obtain/` and the driver's `session/`."""
    asks = re.compile(
        r"(engine|dialect|protocol)(\.name)?\s*(==|!=|in\s*[(\[{])\s*\(?[\"'](mariadb|firebird|postgres|sqlite|mysql)"
    )
    allowed = ("engines/", "obtain/", "session/", "store.py", "tests/")
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked(".py", ".rs")
        if not any(part in str(path.relative_to(ROOT)) for part in allowed)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if asks.search(line)
    ]
    assert offenders == []


def test_the_study_format_is_known_to_the_study_alone() -> None:
    readers = [
        name_of(path)
        for path in modules()
        if "tree_sitter" in path.read_text() or "tomllib" in path.read_text()
    ]
    assert {top(name) for name in readers} <= {"study"}


def test_the_driver_knows_nothing_of_python() -> None:
    assert "pyo3" not in (ROOT / "crates" / "driver" / "Cargo.toml").read_text()


def test_files_hold_one_thing() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked(".py", ".rs")
        if (lines := len(path.read_text(encoding="utf-8").splitlines()))
        > (CLI_LINES_MAX if "/cli/" in str(path) else LINES_MAX)
    }
    assert too_long == {}


def test_names_say_what_they_hold() -> None:
    offenders = [
        str(path.relative_to(ROOT)) for path in tracked() if FORBIDDEN_NAMES.search(path.name.lower())
    ]
    assert offenders == []


def test_no_path_of_a_machine_is_written_down() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in tracked(".py", ".rs", ".toml", ".md", "Makefile", "run", "prerequisites", ".txt", ".html")
        if path.name != "test_tidy.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert offenders == []


def test_the_lock_holds_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.txt").read_text()
    assert "://" not in lock
    assert "--index" not in lock
    pinned = re.findall(r"^[\w.-]+==", lock, re.MULTILINE)
    assert len(pinned) > 20
    assert lock.count("--hash=sha256:") >= len(pinned)


def test_every_command_has_its_file() -> None:
    from dbdyno.cli import VERBS

    assert {path.stem for path in (PACKAGE / "cli").glob("*.py")} >= set(VERBS)
