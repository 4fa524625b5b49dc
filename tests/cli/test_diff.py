"""`dyno diff`: two builds on the command line, in each form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.schemas import require_valid
from tests.cli.test_cli import complaint, dyno
from tests.needs import needs_gcc
from tests.obtain.binary import STORE, built

pytestmark = needs_gcc


@pytest.fixture
def builds(tmp_path: Path, homes: Path) -> tuple[str, str]:
    left, right = built(tmp_path, "left"), built(tmp_path, "right", store=STORE.replace("* 31", "* 33"))
    return str(left), str(right)


def test_a_build_beside_itself_is_inert(builds: tuple[str, str]) -> None:
    assert "Inert: the code and data are the same" in " ".join(
        dyno("diff", builds[0], builds[0]).stdout.split()
    )


def test_the_function_that_differs_is_named(builds: tuple[str, str]) -> None:
    said = dyno("diff", *builds, "--json").stdout
    require_valid("diff", said)
    assert [change["name"] for change in json.loads(said)["changes"]] == ["hashed"]
    assert "hashed" in dyno("diff", *builds).stdout


@pytest.mark.parametrize(("ending", "beginning"), [("html", "<!doctype html>"), ("md", "# "), ("txt", "")])
def test_the_difference_is_written_in_every_form(
    builds: tuple[str, str], tmp_path: Path, ending: str, beginning: str
) -> None:
    path = tmp_path / f"difference.{ending}"
    assert dyno("diff", *builds, "--output", str(path)).stdout.strip() == str(path)
    text = path.read_text()
    assert text.lstrip().startswith(beginning) and "hashed" in text


def test_what_is_no_build_is_refused(builds: tuple[str, str], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert "no whole ELF file" in complaint("diff", builds[0], str(script))
    assert "names no format" in complaint("diff", *builds, "--output", str(tmp_path / "table.csv"))
