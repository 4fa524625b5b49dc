"""`--allow-path`: a level leads out of the server's folder where the study's user says so, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno

STUDY = """
title  = "Does a general log elsewhere cost less?"
engine = "mariadb@11.8"
blocks = 1
images = 1
[workload]
name       = "point_select"
table_size = 100
warmup     = "0s"
duration   = "0.3s"
[settings]
"config.general_log" = true
[factors]
"config.general_log_file" = ["general.log", "{outside}/general.log"]
"""


@pytest.fixture
def outside(homes_with_data: Path) -> Path:
    """A folder that no Dyno owns."""
    folder = homes_with_data / "outside"
    folder.mkdir()
    return folder


@pytest.fixture
def study(homes_with_data: Path, outside: Path) -> str:
    path = homes_with_data / "study.toml"
    path.write_text(STUDY.format(outside=outside))
    return str(path)


def interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_a_server_writes_to_an_allowed_path_and_resuming_needs_it_again(
    study: str, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb in ("plan", "run", "tune", "soak", "calibrate"):
        said = complaint(verb, study)
        assert f"--allow-path {outside}/general.log" in said, verb
    assert list(outside.iterdir()) == []
    with monkeypatch.context() as patched:
        patched.setattr("dbdyno.cli.measuring.run_study", interrupt)
        said = complaint("run", study, "--quiet", "--allow-path", str(outside), code=130)
        assert said.endswith(f" --allow-path {outside}\n")
    with Store(store_url()) as store:
        [name] = [one.run.run for one in store.runs()]
    assert f"--allow-path {outside}" in complaint("run", "--resume", study)
    # The study of a run is not checked again, but its levels are when they are put in.
    dyno("run", "--resume", name, "--quiet")
    with Store(store_url()) as store:
        [blocked] = [one for one in store.records(name) if one.outcome is Outcome.BLOCKED]
    assert "leads outside" in blocked.cause and f"--allow-path {outside}/general.log" in blocked.remedy
    assert list(outside.iterdir()) == []
    again = dyno("run", "--again", name, "--quiet", "--allow-path", str(outside))
    assert again.returncode == 0, again.stderr
    with Store(store_url()) as store:
        outcomes = [one.outcome for one in store.records(store.run("last").run)]
    assert outcomes == [Outcome.MEASURED] * 2
    assert "Query" in (outside / "general.log").read_text(errors="replace")


@pytest.mark.engine
def test_a_calibration_of_an_allowed_path_puts_it_in(
    homes_with_data: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = f'"{outside}/general.log"'
    text = STUDY.format(outside=outside).replace(f'["general.log", {allowed}]', allowed)
    path = homes_with_data / "study.toml"
    path.write_text("aa = true\n" + text.replace("[factors]\n", ""))
    study = str(path)
    assert f"--allow-path {outside}/general.log" in complaint("calibrate", study)
    # The server runs, which is enough: its slices would take a minute.
    monkeypatch.setattr("dbdyno.cli.calibrate._found", interrupt)
    complaint("calibrate", study, "--allow-path", str(outside), code=130)
    assert (outside / "general.log").exists()
