"""A plan says which restarts come before the blocks."""

from __future__ import annotations

from dbdyno.begin.restarts import restarts_text
from dbdyno.study import Restarts, Workload
from dbdyno.study.reference import Reference
from tests.fakes import make_study

SQLITE = Reference("sqlite")


def test_a_plan_names_the_acts_the_load_and_the_control() -> None:
    restarts = Restarts(power_cuts=3, torn_pages=1, kills=2, control={"config.synchronous": "off"})
    study = make_study(1, 2, engine=SQLITE, restarts=restarts, workload=Workload(name="read_only"))
    said = restarts_text(study)
    assert said.startswith(
        "before the blocks, under tpcb: 3 power cuts, 1 torn-page cut, 2 kills of each variant, "
        "and of a control that must lose; on volumes of Dyno's own, which needs root; 3 trials, about "
    )


def test_kills_need_neither_control_nor_root() -> None:
    study = make_study(1, 2, engine=SQLITE, restarts=Restarts(kills=1, control={"config.synchronous": "off"}))
    assert restarts_text(study).startswith("before the blocks, under tpcb: 1 kill of each variant; 2 trials")


def test_a_plan_without_restarts_says_nothing() -> None:
    assert restarts_text(make_study(1, 2, engine=SQLITE)) == ""
