"""A study from its file, with what the command line changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dbdyno.calibrate.kept import keep, place_of
from dbdyno.cli import study_file
from dbdyno.cli.study_file import adapted, catalogue, is_of, overhead_s, study_at, study_of
from dbdyno.errors import StudyError, UserError
from dbdyno.host.fingerprint import identity
from dbdyno.plan.budget import fitted
from dbdyno.records.record import Calibrated, Run
from dbdyno.study import Arrangement, Interval, parse_study
from dbdyno.study.phases import phases_of
from tests.calibrate.test_kept import a_calibration
from tests.cli.test_cli import STUDY
from tests.fakes import make_run

COUNTED = STUDY + '[goal]\nresponse = "instructions_per_op"\n'


def test_a_budget_is_refused_for_counted_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.toml"
    path.write_text(COUNTED)
    monkeypatch.setattr(study_file, "counts", lambda event: "no counters here")
    with pytest.raises(UserError, match="--budget does not go with counted work"):
        adapted(study_at(path), budget_s=3600.0)
    path.write_text(STUDY + "[goal]\ncounted = true\n")
    with pytest.raises(UserError, match="--budget does not go with counted work"):
        adapted(study_at(path), budget_s=3600.0)
    path.write_text(COUNTED)
    monkeypatch.setattr(study_file, "counts", lambda event: "")
    assert adapted(study_at(path), budget_s=3600.0).study.blocks >= 6


@pytest.fixture
def calibrated(homes: Path) -> Path:
    """The file of a study whose host is calibrated, with slices of 0.25 s."""
    path = homes / "study.toml"
    path.write_text(STUDY)
    load = study_at(path).workload
    of_load = {"workload": load.name, "clients": load.clients, "options": dict(load.options)}
    keep(a_calibration(**of_load, place=place_of(identity()), made_unix_s=time.time()))
    return path


def test_a_budget_is_fitted_with_the_slices_of_the_calibration(calibrated: Path) -> None:
    read = study_at(calibrated)
    here = adapted(read, budget_s=600.0)
    assert here.calibrated is not None and here.calibrated.slice_s == here.study.slice_s == 0.25
    assert here.study.arrangement is Arrangement.SIDE_BY_SIDE
    in_slices = {"arrangement": Arrangement.SIDE_BY_SIDE, "slice_s": 0.25}
    assert here.study.workload.duration_s == 1.0
    assert here.study.blocks == fitted(read.model_copy(update=in_slices), 600.0, overhead_s(read)).blocks
    whole = read.model_copy(update={**in_slices, "slice_s": 0.5})
    assert here.study.blocks < fitted(whole, 600.0, overhead_s(read)).blocks


def test_the_slices_of_a_calibration_are_told_where_there_are_slices(calibrated: Path) -> None:
    assert "; slices: 0.25 s" in adapted(study_at(calibrated)).told
    calibrated.write_text('arrangement = "one-after-the-other"\n' + STUDY)
    told = adapted(study_at(calibrated)).told
    assert "calibrated on" in told and "slices" not in told


def test_what_counts_cannot_show_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("[workload]", "[workload]\nclients = [1, 2]") + "[goal]\ncounted = true\n")
    with pytest.raises(UserError, match=r"workload\.clients does not show in counted work"):
        study_at(path)


def test_a_run_from_before_slices_is_read_as_it_was_made() -> None:
    study = parse_study(STUDY.encode(), catalogue(ask_engines=False), "study.toml")
    # Neither the arrangement nor the length of slices, mirrored blocks or a calibration was kept then.
    old = make_run(study).model_copy(update={"mirrored": False})
    assert (old.arrangement, old.slice_s, old.calibrated) == (None, None, None)
    read = study_of(old)
    assert read.arrangement is Arrangement.ONE_AFTER_THE_OTHER
    assert [phase.slices for phase in phases_of(read)] == [None]
    assert (read.settings, read.goal, read.blocks) == (study.settings, study.goal, study.blocks)
    assert Run.model_validate_json(old.model_dump_json()) == old


def test_a_run_keeps_its_arrangement_its_slices_and_its_calibration() -> None:
    study = parse_study(STUDY.encode(), catalogue(ask_engines=False), "study.toml")
    used = Calibrated(
        made_unix_s=1.0, settings={"cpu.server": "0"}, interval=Interval.SIGNED_RANK, slice_s=0.25
    )
    kept = {"arrangement": Arrangement.SIDE_BY_SIDE, "slice_s": 0.25, "calibrated": used, "blocks": 9}
    read = study_of(make_run(study).model_copy(update=kept))
    assert [phase.slices for phase in phases_of(read)] == [4]
    assert (read.settings, read.goal.interval, read.blocks) == (used.settings, used.interval, 9)


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
