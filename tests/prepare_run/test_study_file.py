"""A study from its file, with what the command line changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.prepare_run.study_here import study_at
from tests.cli.calls import STUDY


def test_what_counts_cannot_show_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("[workload]", "[workload]\nclients = [1, 2]") + "[goal]\ncounted = true\n")
    with pytest.raises(UserError, match=r"workload\.clients does not show in counted work"):
        study_at(path)
