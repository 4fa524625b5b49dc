"""A study as a run that begins now carries it out: arranged, fitted to a budget, calibrated.
It says what of the study decides how its trials are arranged."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dbdyno.calibrate.kept import calibrated_host, keep_calibration
from dbdyno.errors import UserError
from dbdyno.host.fingerprint import host_identity
from dbdyno.plan.budget import fitted_to_budget
from dbdyno.prepare_run import building, stored_study
from dbdyno.prepare_run.adapted import adapted, arranged_for, budget_text, has_pauses
from dbdyno.prepare_run.estimate import overhead_s
from dbdyno.prepare_run.study_here import study_at
from dbdyno.study import Arrangement
from dbdyno.study.nouns import RemoteDriver
from tests.calibrate.kept_cases import a_calibration
from tests.cli.calls import STUDY, dyno
from tests.fakes import make_run

COUNTED = STUDY + '[goal]\nresponse = "instructions_per_op"\n'


def test_a_budget_is_refused_for_counted_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.toml"
    path.write_text(COUNTED)
    monkeypatch.setattr(building, "counts", lambda event: "no counters here")
    with pytest.raises(UserError, match="--budget and counted work exclude each other"):
        adapted(study_at(path), budget_s=3600.0)
    path.write_text(STUDY + "[goal]\ncounted = true\n")
    with pytest.raises(UserError, match="--budget and counted work exclude each other"):
        adapted(study_at(path), budget_s=3600.0)
    path.write_text(COUNTED)
    monkeypatch.setattr(building, "counts", lambda event: "")
    assert adapted(study_at(path), budget_s=3600.0).study.blocks >= 6


@pytest.fixture
def calibrated(homes: Path) -> Path:
    """The file of a study whose host is calibrated, with slices of 0.25 s."""
    path = homes / "study.toml"
    path.write_text(STUDY)
    load = study_at(path).workload
    of_load = {"workload": load.name, "clients": load.clients, "options": dict(load.options)}
    keep_calibration(
        a_calibration(**of_load, place=calibrated_host(host_identity()), made_unix_s=time.time())
    )
    return path


def test_a_budget_is_fitted_with_the_slices_of_the_calibration(calibrated: Path) -> None:
    read = study_at(calibrated)
    here = adapted(read, budget_s=600.0)
    assert here.calibrated is not None and here.calibrated.slice_s == here.study.slice_s == 0.25
    assert here.study.arrangement is Arrangement.SIDE_BY_SIDE
    in_slices = {"arrangement": Arrangement.SIDE_BY_SIDE, "slice_s": 0.25}
    assert here.study.workload.duration_s == 1.0
    assert (
        here.study.blocks
        == fitted_to_budget(read.model_copy(update=in_slices), 600.0, overhead_s(read)).blocks
    )
    whole = read.model_copy(update={**in_slices, "slice_s": 0.5})
    assert here.study.blocks < fitted_to_budget(whole, 600.0, overhead_s(read)).blocks


def test_a_budget_chooses_how_often_the_baseline_is_measured_and_the_run_keeps_it(homes: Path) -> None:
    path = homes / "study.toml"
    more = '[8192, 4096, 16384, 32768]\n"config.sweep_interval" = [20000, 0]'
    path.write_text(STUDY.replace("[8192, 16384]", more))
    here = adapted(study_at(path), budget_s=600.0)
    assert here.study.baselines == 2 and here.basis is not None
    assert "measured per trial and 2 baselines" in budget_text(here.study, here.basis)
    run = make_run(study_at(path))
    assert stored_study.study_of(run.but(baselines=2)).baselines == 2
    assert "baselines" not in run.model_dump(mode="json") and stored_study.study_of(run).baselines_each == 1
    path.write_text("baselines = 1\n" + path.read_text())
    assert adapted(study_at(path), budget_s=600.0).study.baselines == 1


def test_the_slices_of_a_calibration_are_told_where_there_are_slices(calibrated: Path) -> None:
    assert "; slices: 0.25 s" in adapted(study_at(calibrated)).told
    calibrated.write_text('arrangement = "one-after-the-other"\n' + STUDY)
    told = adapted(study_at(calibrated)).told
    assert "calibrated on" in told and "slices" not in told


def test_a_study_whose_driver_is_elsewhere_takes_no_calibration(calibrated: Path) -> None:
    study = study_at(calibrated)
    assert adapted(study).calibrated is not None
    driver = RemoteDriver(hosts=("load1",), address="10.0.0.1", tls=True)
    found = adapted(study.but(driver=driver))
    assert (found.calibrated, found.told) == (None, "")


ARRANGEMENT_STUDY = """
engine = "sqlite"
[workload]
{workload}
[factors]
"config.cache_size" = [-2000, -8000]
"""
SCRIPT = """
[[transactions]]
name = "look"
{pause}
statements = ["SELECT 1"]
"""


def study_of(folder: Path, workload: str) -> Path:
    path = folder / "study.toml"
    path.write_text(ARRANGEMENT_STUDY.format(workload=workload))
    return path


@pytest.mark.parametrize(
    ("think_times", "pauses"), [("false", False), ("true", True), ("[false, true]", True)]
)
def test_terminals_that_key_in_and_think_have_no_slices(homes: Path, think_times: str, pauses: bool) -> None:
    path = study_of(homes, f'name = "tpcc"\nthink_times = {think_times}')
    found = arranged_for(study_at(path), counted=False)
    assert (found.arrangement is Arrangement.ONE_AFTER_THE_OTHER) is pauses
    told = "one after the other: tpcc has pauses of its own" if pauses else "run side by side"
    assert told in dyno("plan", str(path)).stdout


@pytest.mark.parametrize(("pause", "pauses"), [("", False), ('think_time = "5ms"', True)])
def test_so_has_a_script_with_pauses(homes: Path, pause: str, pauses: bool) -> None:
    script = homes / "look.toml"
    script.write_text(SCRIPT.format(pause=pause))
    assert has_pauses(study_at(study_of(homes, f'name = "script"\nfile = "{script}"'))) is pauses


def test_options_that_the_driver_refuses_are_told_where_they_are_used(homes: Path) -> None:
    broken = homes / "broken.toml"
    broken.write_text(SCRIPT.format(pause="think_tine = '1s'"))
    assert not has_pauses(study_at(study_of(homes, f'name = "script"\nfile = "{broken}"')))


def test_a_load_with_pauses_is_not_calibrated(homes: Path) -> None:
    said = dyno("calibrate", str(study_of(homes, 'name = "tpcc"\nthink_times = true')))
    assert said.returncode == 2 and "pace of its own" in said.stderr
