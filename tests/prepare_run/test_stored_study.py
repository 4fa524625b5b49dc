"""The study of a stored run is as it was when the run began."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbdyno.errors import StudyError
from dbdyno.prepare_run.building import builds_of
from dbdyno.prepare_run.stored_study import is_of, study_of
from dbdyno.prepare_run.study_here import catalogue, study_at
from dbdyno.records.run import Calibrated, run_of_document
from dbdyno.study import Arrangement, Interval, parse_study
from dbdyno.study.trials import phases_of
from tests.applications.environment_cases import ALL, environment
from tests.cli.calls import STUDY, dyno
from tests.fakes import make_run


def test_a_run_from_before_slices_is_read_as_it_was_made() -> None:
    study = parse_study(STUDY.encode(), catalogue(ask_engines=False), "study.toml")
    # Neither the arrangement nor the length of slices, mirrored blocks or a calibration was kept then.
    old = make_run(study).model_copy(update={"mirrored": False})
    assert (old.arrangement, old.slice_s, old.calibrated) == (None, None, None)
    read = study_of(old)
    assert read.arrangement is Arrangement.ONE_AFTER_THE_OTHER
    assert [phase.slices for phase in phases_of(read)] == [None]
    assert (read.settings, read.goal, read.blocks) == (study.settings, study.goal, study.blocks)
    assert run_of_document(old.model_dump_json()) == old


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


ROOT = Path(__file__).parents[2]


def a_study(folder: Path, file: str = "application.toml", version: str = "30.0.0") -> str:
    text = (ROOT / "studies" / file).read_text().replace("keystone==30.0.0", f"keystone=={version}")
    text = text.replace("../docs", str(ROOT / "docs")).replace('"keystone/', f'"{ROOT}/studies/keystone/')
    path = folder / "study.toml"
    path.write_text(text)
    return str(path)


def test_a_plan_names_the_application_with_its_version_and_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    environment(tmp_path / "dyno" / "applications" / "keystone-30.0.0", ALL)
    study = a_study(tmp_path)
    told = dyno("plan", study)
    assert told.returncode == 0, told.stderr
    [line] = [line for line in told.stdout.splitlines() if line.startswith("in front: keystone 30.0.0 (")]
    assert line.endswith(", 4 workers")
    [planned] = json.loads(dyno("plan", study, "--json").stdout)["in_front"]
    assert (planned["name"], planned["title"], planned["workers"]) == ("keystone", "keystone 30.0.0", 4)
    assert planned["digest"] in line and "missing" not in planned


def test_a_plan_says_how_to_install_an_application_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told = dyno("plan", a_study(tmp_path, version="29.0.0"))
    assert told.returncode == 0, told.stderr
    said = " ".join(told.stdout.split())
    assert "in front: keystone, which is not here: " in said
    assert "[front.keystone] needs keystone==29.0.0" in said and "pip install keystone==29.0.0" in said


def test_what_is_known_of_builds_names_the_applications_own_load_that_trains_them(tmp_path: Path) -> None:
    asked = study_at(Path(a_study(tmp_path, "application-builds.toml")))
    trainers = [build.trainer for build in builds_of(asked)]
    assert trainers[0] == "" and len(trainers) == 3
    assert trainers[1].startswith("read_write ") and trainers[1].endswith("2,000 transactions of 4 clients")
    assert trainers[2].startswith("script ") and "docs/guides/keystone.toml" in trainers[2]
