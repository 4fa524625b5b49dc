"""What sets a run apart, and what its noise goes by."""

from __future__ import annotations

import pytest

from dbdyno.records.circumstances import Circumstance, circumstances_of, noise_of
from dbdyno.records.run import Run
from dbdyno.study import Arrangement, Study
from tests.fakes import make_run, make_study

HOST = {"name": "bench-1", "cpu": {"model": "a CPU", "usable_cores": 4}, "kernel": "6.1"}


def a_run(**changes: object) -> tuple[Study, Run]:
    study = make_study(1, 2)
    return study, make_run(study).but(**{"host": HOST, **changes})


def told(**changes: object) -> dict[Circumstance, str]:
    return circumstances_of(*a_run(**changes), engine="toy 1.2")


def test_every_circumstance_is_told() -> None:
    assert told(installation={"digest": "0123456789abcdef"}, dyno_version="9") == {
        Circumstance.HOST: "bench-1, 4 x a CPU, kernel 6.1",
        Circumstance.ENGINE: "toy 1.2, build 01234567",
        Circumstance.CALIBRATION: "none",
        Circumstance.ARRANGEMENT: "one-after-the-other",
        Circumstance.DURATION: f"{make_study(1).workload.duration_s:g} s",
        Circumstance.DYNO: "9",
        Circumstance.FILES: "none",
    }


def test_a_container_is_known_by_what_it_runs_on() -> None:
    found = [
        told(host=HOST | {"name": name, "virtualisation": "container-docker"}) for name in ("ab12", "cd34")
    ]
    assert found[0] == found[1] and found[0][Circumstance.HOST].startswith("container, 4 x a CPU")


def test_slices_belong_to_the_arrangement_where_servers_run_side_by_side() -> None:
    beside = told(arrangement=Arrangement.SIDE_BY_SIDE, slice_s=0.5)
    assert beside[Circumstance.ARRANGEMENT] == "side-by-side, slices of 0.5 s"
    alone = told(arrangement=Arrangement.ONE_AFTER_THE_OTHER, slice_s=0.5)
    assert alone[Circumstance.ARRANGEMENT] == "one-after-the-other"


@pytest.mark.parametrize(
    ("changes", "alike"),
    [
        ({"host": HOST | {"name": "another"}}, True),
        ({"seed": 7}, True),
        ({"blocks": 99}, False),
        ({"host": HOST | {"cpu": {"model": "a CPU", "usable_cores": 8}}}, False),
        ({"dyno_version": "1"}, False),
    ],
)
def test_noise_goes_by_the_machine_and_the_size_of_a_run(changes: dict[str, object], alike: bool) -> None:
    _, ours = a_run()
    _, theirs = a_run(**changes)
    assert (noise_of(ours) == noise_of(theirs)) is alike
