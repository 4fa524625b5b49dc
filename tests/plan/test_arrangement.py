"""Whether the servers of a block can run side by side, and how long their slices are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.plan.arrangement import SLICE_MOST_S, Circumstances, WarmUp, arranged, longer_slices
from dbdyno.records.amplification import WRITE
from dbdyno.study import Arrangement, Factor, Goal, Study
from dbdyno.study.soak import Meanwhile
from dbdyno.study.trials import SETTLE_S, phases_of
from tests.fakes import make_study

BESIDE, AFTER = Arrangement.SIDE_BY_SIDE, Arrangement.ONE_AFTER_THE_OTHER


ALTER = Meanwhile(name="alter", at_s=5.0, sql="ALTER TABLE a ADD b INT")


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
        (make_study(1, 2).but(meanwhile=(ALTER,)), Circumstances(), "acts go on beside a load"),
        (with_load(schedule="points:0s=9"), Circumstances(), "workload.schedule"),
        (with_load(think_time="10ms"), Circumstances(), "workload.think_time"),
        (make_study(1, 2), Circumstances(pauses=True), "tpcb has pauses of its own"),
        (make_study(10.0, 20.0, factor="workload.rate_per_s"), Circumstances(), "workload.rate_per_s"),
        (make_study(1, 2, arrangement=AFTER), Circumstances(), "the study asks for it"),
        (make_study(1, 2).but(goal=Goal(response=WRITE)), Circumstances(), "counts what the disk writes"),
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


SLICED = with_load(warmup_s=1.0, duration_s=4.0).but(arrangement=BESIDE, slice_s=0.5)


def warm(told: int, clients: int = 4, variant: str = "baseline") -> WarmUp:
    return WarmUp(variant=variant, clients=clients, told=told)


def test_slices_that_hold_two_transactions_of_each_client_stay() -> None:
    assert longer_slices(SLICED, [warm(18)]) is None
    assert longer_slices(SLICED, []) is None
    assert longer_slices(SLICED.but(arrangement=AFTER), [warm(4)]) is None
    unwarmed = SLICED.but(workload=SLICED.workload.but(warmup_s=0.0))
    assert longer_slices(unwarmed, [warm(4)]) is None


def test_the_slowest_variant_makes_the_slices_of_all_longer() -> None:
    found = longer_slices(SLICED, [warm(400), warm(10, variant="slow")])
    assert found is not None
    assert (found.slice_s, found.duration_s) == (2.5, 5.0)
    assert "a client of slow ended 2.5 transactions" in found.why
    longer = found.of(SLICED)
    assert phases_of(longer)[0].stretches_s == (1.0, SETTLE_S + 2.5, SETTLE_S + 2.5)


def test_a_load_that_holds_longer_slices_keeps_its_length() -> None:
    long = SLICED.but(workload=SLICED.workload.but(duration_s=20.0))
    found = longer_slices(long, [warm(10)])
    assert found is not None
    assert phases_of(found.of(long))[0].duration_s == 20.0


@given(told=st.integers(0, 40), clients=st.integers(1, 40), warmup_s=st.floats(0.1, 100.0))
def test_longer_slices_are_long_enough_by_the_same_warm_up(told: int, clients: int, warmup_s: float) -> None:
    study = SLICED.but(workload=SLICED.workload.but(warmup_s=warmup_s))
    found = longer_slices(study, [warm(told, clients)])
    if found is not None:
        assert 0.5 < found.slice_s <= SLICE_MOST_S
        assert longer_slices(found.of(study), [warm(told, clients)]) is None
