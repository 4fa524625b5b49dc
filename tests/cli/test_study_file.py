"""A study from its file, with what the command line changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.cli import study_file
from dbdyno.errors import UserError
from tests.cli.test_cli import STUDY

COUNTED = STUDY + '[goal]\nresponse = "instructions_per_op"\n'


def test_a_budget_is_refused_for_counted_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.toml"
    path.write_text(COUNTED)
    monkeypatch.setattr(study_file, "counts", lambda event: "no counters here")
    with pytest.raises(UserError, match="--budget does not go with counted work"):
        study_file.study_at(path, budget_s=3600.0)
    monkeypatch.setattr(study_file, "counts", lambda event: "")
    assert study_file.study_at(path, budget_s=3600.0).blocks >= 6
