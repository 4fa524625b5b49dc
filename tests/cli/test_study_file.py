"""A study from its file, with what the command line changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.cli import study_file
from dbdyno.cli.study_file import adapted, is_of, study_at, study_of
from dbdyno.errors import StudyError, UserError
from tests.cli.test_cli import STUDY
from tests.fakes import make_run

COUNTED = STUDY + '[goal]\nresponse = "instructions_per_op"\n'


def test_a_budget_is_refused_for_counted_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.toml"
    path.write_text(COUNTED)
    monkeypatch.setattr(study_file, "counts", lambda event: "no counters here")
    with pytest.raises(UserError, match="--budget does not go with counted work"):
        adapted(study_at(path), budget_s=3600.0)
    monkeypatch.setattr(study_file, "counts", lambda event: "")
    assert adapted(study_at(path), budget_s=3600.0).study.blocks >= 6


def test_a_study_starts_from_a_configuration_file_as_it_was_when_its_run_began(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(
        """
        engine = { name = "firebird@5", configuration = "my/firebird.conf" }
        workload.name = "tpcb"
        settings."config.LockMemSize" = "2M"
        factors."config.TempBlockSize" = ["1M", "2M"]
        """
    )
    with pytest.raises(StudyError) as missing:
        study_at(path)
    assert [mistake.line for mistake in missing.value.mistakes] == [2]
    (homes / "my").mkdir()
    file = homes / "my" / "firebird.conf"
    file.write_text("TempCacheLimit = 32M\nRemoteServicePort = 1\nLockMemSize = 4M\nTempBlockSize = 4M\n")
    study = study_at(path)
    assert study.settings == {"config.TempCacheLimit": "32M", "config.LockMemSize": "2M"}
    assert study.configuration is not None
    assert [one.line for one in study.configuration.not_taken] == [2]
    run = make_run(study).model_copy(update={"configuration": study.configuration})
    file.write_text("TempCacheLimit = 16M\n")
    assert study_of(run).settings == study.settings
    assert is_of(run, study) and not is_of(run, study_at(path))
