"""Whether the servers of a block can run side by side."""

from __future__ import annotations

import pytest

from dbdyno.plan.arrangement import Circumstances, arranged
from dbdyno.study import Arrangement, Factor, Study
from dbdyno.study.phases import SETTLE_S, phases_of
from tests.fakes import make_study

BESIDE, AFTER = Arrangement.SIDE_BY_SIDE, Arrangement.ONE_AFTER_THE_OTHER


def with_load(**changes: object) -> Study:
    study = make_study(1, 2)
    return study.but(workload=study.workload.but(**changes))


def test_a_study_of_servers_alone_runs_side_by_side() -> None:
    found = arranged(make_study(1, 2), Circumstances(needed_bytes=800, available_bytes=1000))
    assert (found.arrangement, found.why) == (BESIDE, "")


@pytest.mark.parametrize(
    ("study", "circumstances", "why"),
    [
        (make_study(1, 2), Circumstances(counted=True), "counted"),
        (make_study(1, 2), Circumstances(host_factors=("cpu.governor",)), "cpu.governor concerns the host"),
        (make_study(1, 2), Circumstances(needed_bytes=801, available_bytes=1000), "MiB available"),
        (with_load(rate_per_s=100.0), Circumstances(), "workload.rate_per_s starts transactions"),
        (with_load(schedule="points:0s=9"), Circumstances(), "workload.schedule"),
        (with_load(think_time="10ms"), Circumstances(), "workload.think_time"),
        (make_study(1, 2), Circumstances(pauses=True), "tpcb has pauses of its own"),
        (make_study(10.0, 20.0, factor="workload.rate_per_s"), Circumstances(), "workload.rate_per_s"),
        (make_study(1, 2, arrangement=AFTER), Circumstances(), "the study asks for it"),
    ],
)
def test_what_rules_it_out_is_named(study: Study, circumstances: Circumstances, why: str) -> None:
    found = arranged(study, circumstances)
    assert found.arrangement is AFTER
    assert why in found.why


def test_two_studies_side_by_side_need_room_for_all_their_servers() -> None:
    own = Circumstances(needed_bytes=500, available_bytes=1000)
    assert arranged(make_study(1, 2), own.with_other(Circumstances(needed_bytes=300))).arrangement is BESIDE
    for other, why in (
        (Circumstances(needed_bytes=301), "MiB available"),
        (Circumstances(host_factors=("cpu.governor",)), "cpu.governor"),
        (Circumstances(pauses=True), "pauses"),
        (Circumstances(counted=True), "counted"),
    ):
        assert why in arranged(make_study(1, 2), own.with_other(other)).why


def test_the_clients_may_vary_side_by_side() -> None:
    study = make_study(1, 8, factor="workload.clients")
    assert study.factors == (Factor(name="workload.clients", levels=(1, 8)),)
    assert arranged(study, Circumstances()).arrangement is BESIDE


@pytest.mark.parametrize(("duration_s", "slices"), [(0.2, 2), (1.5, 4), (2.0, 4), (20.0, 40)])
def test_slices_are_even_in_number_and_share_the_measured_part(duration_s: float, slices: int) -> None:
    study = with_load(duration_s=duration_s).but(arrangement=BESIDE)
    [phase] = phases_of(study)
    assert (phase.slices, phase.duration_s) == (slices, duration_s)
    assert phase.takes_s == pytest.approx(duration_s + slices * SETTLE_S)


def test_a_study_that_is_not_arranged_has_loads_in_one_piece() -> None:
    assert [phase.slices for phase in phases_of(make_study(1, 2))] == [None]
