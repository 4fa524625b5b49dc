"""Which bindings are tried."""

from __future__ import annotations

import pytest

from dbdyno.calibrate.binding import bindings, listed
from tests.analyse.factory import a_study


@pytest.mark.parametrize(
    ("cpus", "bound"),
    [
        ([0], [("all", "all")]),
        ([0, 1], [("all", "all"), ("all", "1"), ("1", "1"), ("0", "1")]),
        ([0, 1, 2, 3], [("all", "all"), ("all", "3"), ("2-3", "2-3"), ("0-2", "3")]),
    ],
)
def test_server_and_driver_are_free_together_and_apart(cpus: list[int], bound: list[tuple[str, str]]) -> None:
    found = bindings(a_study(), embedded=False, cpus=cpus)
    assert [(one.server, one.driver) for one in found] == bound
    assert not found[0].settings


def test_an_embedded_engine_has_no_driver_to_bind() -> None:
    found = bindings(a_study(), embedded=True, cpus=[0, 1])
    assert [one.settings for one in found] == [{}, {"cpu.server": "0"}]


def test_a_study_that_binds_something_keeps_that() -> None:
    assert len(bindings(a_study({"cpu.quota": ["max", "50%"]}), embedded=False, cpus=[0, 1])) == 1
    fixed = a_study().but(settings={"cpu.server": "0"})
    assert len(bindings(fixed, embedded=False, cpus=[0, 1])) == 1


def test_gathering_is_tried_only_where_the_study_asks_for_it() -> None:
    study = a_study()
    asks = study.but(workload=study.workload.but(gather="on"))
    assert [one.gather for one in bindings(asks, embedded=True, cpus=[0, 1])] == [True, True, False, False]
    assert not any(one.gather for one in bindings(study, embedded=False, cpus=[0, 1]))


def test_cpus_are_listed_as_the_kernel_does() -> None:
    assert [listed(cpus) for cpus in ([3], [0, 1, 2], [0, 2])] == ["3", "0-2", "0,2"]
