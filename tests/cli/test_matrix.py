"""`dyno matrix`: runs from the store, in every form, and runs that make no matrix."""

from __future__ import annotations

from pathlib import Path

from tests.cli.calls import complaint, dyno
from tests.cli.runs_cases import runs

__all__ = ["runs"]


def test_runs_are_put_beside_each_other(runs: Path) -> None:
    shown = dyno("matrix", "first", "second")
    assert shown.returncode == 0, shown.stderr
    plain = " ".join(shown.stdout.split())
    assert "Best: " in plain and "Worst: " in plain and "Measured on" in plain
    page = runs / "matrix.html"
    assert dyno("matrix", "first", "second", "--output", str(page)).returncode == 0
    assert "Measured on" in page.read_text()


def test_what_makes_no_matrix_is_refused(runs: Path) -> None:
    assert "a run is named twice" in complaint("matrix", "first", "first")
    assert "no run 'nothing'" in complaint("matrix", "nothing")
