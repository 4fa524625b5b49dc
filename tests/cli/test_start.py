"""What a command imports before it does anything: nothing heavy that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_run import STUDY

HEAVY = (
    *("scipy", "altair", "polars", "vl_convert", "h5py", "debian.debfile"),
    *("sqlalchemy.dialects.postgresql", "psycopg"),
)
BY_STUDIES = ("numpy", "dbdyno.engines", "dbdyno.layers", "dbdyno.analyse")
"""What reading a study needs, and listing runs does not."""


@pytest.mark.parametrize(
    ("verb", "unused"), [("runs", (*HEAVY, *BY_STUDIES)), ("plan", (*HEAVY, "sqlalchemy"))], ids=str
)
def test_a_command_that_only_lists_imports_nothing_heavy(
    homes: Path, verb: str, unused: tuple[str, ...]
) -> None:
    path = homes / "study.toml"
    path.write_text(STUDY)
    code = (
        "import sys\n"
        "from dbdyno.cli import main\n"
        "try:\n    main()\n"
        f"finally:\n    print('imported:', sorted(set({unused!r}) & set(sys.modules)))\n"
    )
    arguments = [verb, str(path)] if verb == "plan" else [verb]
    said = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert "imported: []" in said.stdout
