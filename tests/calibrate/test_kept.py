"""A calibration is found again where it belongs, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.calibrate.kept import DAY_S, found_for, keep_calibration
from dbdyno.study import Study
from tests.analyse.factory import a_study
from tests.calibrate.kept_cases import HERE, MADE_UNIX_S, a_calibration


def test_a_calibration_is_found_again_by_studies_of_its_load(homes: Path) -> None:
    keep_calibration(a_calibration())
    found, why_not = found_for(a_study(), HERE, MADE_UNIX_S + DAY_S)
    assert found == a_calibration() and not why_not
    assert found.used.settings == {"cpu.server": "0", "cpu.driver": "1"}
    assert found.used.slice_s == 0.25


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"place": HERE.but(name="there")}, "another host (there"),
        ({"place": HERE.but(usable_cores=4)}, "another host"),
        ({"place": HERE.but(kernel="6.1")}, "the kernel 6.1"),
        ({"made_unix_s": MADE_UNIX_S - 31 * DAY_S}, "31 days old"),
    ],
)
def test_a_stale_calibration_is_named_and_not_used(
    homes: Path, changes: dict[str, object], said: str
) -> None:
    keep_calibration(a_calibration(**changes))
    found, why_not = found_for(a_study(), HERE, MADE_UNIX_S)
    assert found is None and said in why_not


def test_one_that_holds_is_used_though_a_later_one_is_of_another_host(homes: Path) -> None:
    elsewhere = HERE.but(name="there")
    keep_calibration(a_calibration())
    keep_calibration(a_calibration(place=elsewhere, made_unix_s=MADE_UNIX_S + DAY_S))
    found, _ = found_for(a_study(), HERE, MADE_UNIX_S + 2 * DAY_S)
    assert found == a_calibration()


@pytest.mark.parametrize(
    "study",
    [
        a_study({"cpu.server": ["all", "0"]}),
        a_study().but(settings={"cpu.driver": "0"}),
        a_study().but(workload=a_study().workload.but(clients=3)),
    ],
)
def test_other_loads_and_studies_that_bind_something_use_none(homes: Path, study: Study) -> None:
    keep_calibration(a_calibration())
    assert found_for(study, HERE, MADE_UNIX_S) == (None, "")


def test_what_cannot_be_read_is_as_if_it_were_not_there(homes: Path) -> None:
    path = keep_calibration(a_calibration())
    path.write_text("{")
    assert found_for(a_study(), HERE, MADE_UNIX_S) == (None, "")


def test_a_calibration_holds_for_thirty_days(homes: Path) -> None:
    keep_calibration(a_calibration())
    ages = (30 * DAY_S, 30 * DAY_S + 1.0)
    held = [found_for(a_study(), HERE, MADE_UNIX_S + age)[0] is not None for age in ages]
    assert held == [True, False]
