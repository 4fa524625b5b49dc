"""What a command imports before it does anything: nothing heavy that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
