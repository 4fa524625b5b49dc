"""`dyno calibrate`: measured with a real engine, kept, and used by studies until they say otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dbdyno.calibrate.kept import Calibration, calibrated_host, keep_calibration
from dbdyno.cli.calibrate import _require_server_alone, print_calibration
from dbdyno.cli.terminal import terminal
from dbdyno.errors import UserError
from dbdyno.host.fingerprint import fingerprint
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.study.front import FrontProgram
from dbdyno.study.nouns import RemoteDriver
from tests.cli.calls import dyno
from tests.cli.schemas import require_valid
from tests.conftest import homes_in
from tests.fakes import make_study

STUDY = """
title  = "Which cache?"
engine = "sqlite"
blocks = 2
[workload]
name     = "point_select"
warmup   = "0s"
duration = "0.5s"
[factors]
"config.cache_size" = [-2000, -8000]
"""
SHORT = ("--time", "1s")


@pytest.fixture
def study(homes: Path) -> Path:
    return study_in(homes)


def study_in(folder: Path) -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    """What the study's engine shows here: measured once, because that takes most of a minute."""
    folder = tmp_path_factory.mktemp("calibrated")
    with pytest.MonkeyPatch.context() as patch, homes_in(folder, patch) as home:
        said = dyno("calibrate", str(study_in(home)), *SHORT, "--json")
    assert said.returncode == 0, said.stderr
    require_valid("calibrate", said.stdout)
    return Calibration.model_validate_json(said.stdout)


def test_an_application_in_front_of_the_server_is_refused() -> None:
    own = {"keystone": FrontProgram(command="served", ready="GET /")}
    study = make_study(1, 2).but(fronts=own, settings={"front.kind": "keystone"})
    with pytest.raises(UserError, match="keystone stands in front of the server") as refused:
        _require_server_alone(study)
    assert "dyno calibrate --engine" in refused.value.hint


def test_a_load_from_another_host_is_refused() -> None:
    driver = RemoteDriver(hosts=("load1",), address="10.0.0.1", tls=True)
    study = make_study(1, 2).model_copy(update={"driver": driver})
    with pytest.raises(UserError, match="the load comes from load1, and a calibration binds a driver"):
        _require_server_alone(study)


def test_each_binding_is_measured_against_itself(calibrated: Calibration) -> None:
    tried = [(each.arrangement.server, each.arrangement.slice_s) for each in calibrated.findings]
    bound = [("0", 0.5)] if len(os.sched_getaffinity(0)) > 1 else []
    assert tried[: 1 + len(bound)] == [("all", 0.5), *bound]
    assert {length for _, length in tried} == {0.25, 0.5, 1.0}
    assert all(each.slices >= 12 and each.speed_per_s > 0 for each in calibrated.findings)
    free, *others = calibrated.findings
    assert free.against is None and all(each.against and each.against.needed > 1.0 for each in others)
    assert calibrated.why and calibrated.why_slice


def test_the_table_has_a_row_for_each(calibrated: Calibration, capsys: pytest.CaptureFixture[str]) -> None:
    print_calibration(calibrated, terminal())
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    assert len(rows) > len(calibrated.findings)
    assert next(row[:3] for row in rows if row[2:4] == ["0.5", "s"]) == ["all", "all", "0.5"]
    gains = [line for line in said.splitlines() if ": gain " in line and ", needed " in line]
    assert len(gains) >= 2 and "Instead of both free, slices of 0.5 s:" in said
    words = " ".join(said.split())
    kept, _, slices = words.partition("Kept: ")[2].partition("Slices: ")
    for chosen, what, tried in (
        (kept, "binding", len(os.sched_getaffinity(0)) > 1),
        (slices, "length", True),
    ):
        assert ("gain" in chosen and "needed" in chosen) if tried else f"no other {what} was tried" in chosen


def test_nothing_to_calibrate_is_a_users_mistake(homes: Path) -> None:
    assert dyno("calibrate").returncode == 2
    said = dyno("calibrate", "--engine", "sqlite", "--workload", "point_slect")
    assert said.returncode == 2 and "point_select" in said.stderr


def test_a_load_with_a_pace_of_its_own_is_refused(study: Path) -> None:
    study.write_text(STUDY.replace("[workload]", "[workload]\nrate_per_s = 10"))
    said = dyno("calibrate", str(study))
    assert said.returncode == 2 and "pace of its own" in said.stderr


def with_best(calibration: Calibration, **arrangement: object) -> Calibration:
    """The same with another best arrangement."""
    best = calibration.best
    other = best.model_copy(update={"arrangement": best.arrangement.model_copy(update=arrangement)})
    return calibration.model_copy(update={"best": other})


def test_a_study_uses_it_unless_it_says_otherwise(study: Path, calibrated: Calibration) -> None:
    last = str(max(os.sched_getaffinity(0)))
    keep_calibration(with_best(calibrated, server=last, slice_s=0.125))
    told = json.loads(dyno("plan", str(study), "--json").stdout)["calibrated"]
    assert (told["settings"], told["interval"]) == ({"cpu.server": last}, "student")
    assert json.loads(dyno("plan", str(study), "--json", "--no-calibration").stdout)["calibrated"] is None
    assert "slices of 0.125 s" in " ".join(dyno("plan", str(study)).stdout.split())
    said = dyno("run", str(study), "--blocks", "1")
    details = " ".join(dyno("report", "last", "--details").stdout.split())
    assert "calibrated on" in said.stderr and f"cpu.server = {last}" in details
    assert "a slice is about 0.125 s" in details
    with Store(store_url(None)) as store:
        run = store.run("last")
        assert run.calibrated is not None and run.calibrated.settings == {"cpu.server": last}
        assert (run.calibrated.slice_s, run.slice_s) == (0.125, 0.125)
        assert all(record.tally and len(record.tally.slices) == 4 for record in store.records(run.run))
        proofs = [{one.factor: one for one in record.evidence} for record in store.records(run.run)]
    assert proofs and all(each["cpu.server"].in_effect for each in proofs)


def test_a_study_that_names_the_length_of_its_slices_keeps_it(study: Path, calibrated: Calibration) -> None:
    study.write_text(STUDY.replace("blocks = 2", 'blocks = 2\nslice = "0.25s"'))
    keep_calibration(with_best(calibrated, slice_s=1.0))
    assert "slice_s" not in json.loads(dyno("plan", str(study), "--json").stdout)["calibrated"]
    assert "slices of 0.25 s" in " ".join(dyno("plan", str(study)).stdout.split())


def test_a_stale_one_is_named(study: Path, calibrated: Calibration) -> None:
    place = calibrated_host(fingerprint()).model_copy(update={"kernel": "2.6"})
    keep_calibration(calibrated.model_copy(update={"place": place}))
    assert "the kernel 2.6" in dyno("plan", str(study)).stdout
