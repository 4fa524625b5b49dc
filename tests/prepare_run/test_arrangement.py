"""How a run arranges its trials here: what of the study decides, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.prepare_run.adapted import arranged_for, has_pauses
from dbdyno.prepare_run.study_here import study_at
from dbdyno.study import Arrangement
from tests.cli.calls import dyno

STUDY = """
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
    path.write_text(STUDY.format(workload=workload))
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
