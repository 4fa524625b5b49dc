"""What a command imports: nothing heavy that it does not use, and few modules of Dyno's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.cli import VERBS
from tests.cli.calls import STUDY as OF_FIREBIRD
from tests.study_texts import STUDY

HEAVY = (
    "numpy",
    "scipy",
    "altair",
    "polars",
    "vl_convert",
    "h5py",
    "debian.debfile",
    "psycopg",
    "asyncio",
    "starlette",
    "uvicorn",
)
BY_STUDIES = ("dbdyno.engines", "dbdyno.layers", "dbdyno.analyse", "dbdyno.study.reader", "tree_sitter")
"""What reading a study needs, and listing runs does not."""
STORE = ("dbdyno.records.store", "sqlite3")
BY_VERBS = ("pydantic", "rich", "tree_sitter", "dbdyno.study", *STORE)
"""What some verb needs, and the list of verbs does not."""


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (["--help"], (*HEAVY, *BY_STUDIES, *BY_VERBS)),
        (["runs"], (*HEAVY, *BY_STUDIES)),
        (["plan", "study.toml"], (*HEAVY, "dbdyno.analyse.model", *STORE)),
        (["config"], (*HEAVY, *BY_STUDIES, *STORE)),
        (["serve", "--help"], HEAVY),
        (["profile", "--help"], ("altair", "vl_convert")),
    ],
    ids=str,
)
def test_a_command_that_only_shows_imports_nothing_heavy(
    homes: Path, arguments: list[str], unused: tuple[str, ...]
) -> None:
    (homes / "study.toml").write_text(STUDY)
    code = (
        "import sys\n"
        "from dbdyno.cli import main\n"
        "try:\n    main()\n"
        f"finally:\n    print('imported:', sorted(set({unused!r}) & set(sys.modules)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, cwd=homes
    )
    assert said.returncode == 0, said.stderr
    assert "imported: []" in said.stdout


HELP_MOST = 80
"""Modules of Dyno that the help of a verb imports at most. What carries the verb out is imported when it
runs."""
EACH_HELP = """
import json, os, sys
from dbdyno.cli import VERBS, main

def count(verb, told):
    sys.argv = ["dyno", verb, "--help"]
    sys.stdout = open(os.devnull, "w")
    try:
        main()
    finally:
        os.write(told, json.dumps(sum(name.startswith("dbdyno") for name in sys.modules)).encode())
        os._exit(0)

counts = {}
for verb in VERBS:
    # A process of its own for each, which begins where the list of verbs is known.
    read, told = os.pipe()
    if os.fork() == 0:
        count(verb, told)
    os.close(told)
    counts[verb] = json.loads(os.read(read, 100))
    os.wait()
print(json.dumps(counts))
"""


def test_the_help_of_a_verb_imports_little_of_dyno(homes: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", EACH_HELP], capture_output=True, text=True, check=True, cwd=homes
    )
    counts = json.loads(said.stdout)
    assert counts.keys() == VERBS.keys()
    assert {verb: count for verb, count in counts.items() if count > HELP_MOST} == {}


COUNTED = """
import json, sys
from dbdyno.cli import main
try:
    main()
finally:
    print(json.dumps(sum(name.startswith("dbdyno") for name in sys.modules)), file=sys.stderr)
"""


@pytest.mark.engine
def test_a_command_imports_only_what_its_kind_of_run_needs(homes_with_engines: Path) -> None:
    """Of a study of Firebird on this host, which makes no builds, searches nothing and restarts nothing."""
    (homes_with_engines / "study.toml").write_text(OF_FIREBIRD)
    most = {
        ("plan", "study.toml"): 240,
        ("run", "study.toml", "--wait"): 400,
        ("report", "last"): 300,
        ("runs",): 65,
    }
    counts = {}
    for arguments in most:
        said = subprocess.run(
            [sys.executable, "-c", COUNTED, *arguments],
            capture_output=True,
            text=True,
            check=True,
            cwd=homes_with_engines,
        )
        counts[arguments] = int(said.stderr.splitlines()[-1])
    assert {each: count for each, count in counts.items() if count > most[each]} == {}
