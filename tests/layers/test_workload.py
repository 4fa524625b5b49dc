"""The workload layer: what a study's levels make of the driver's job."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.driver.job import Closed, Job
from dbdyno.frozen import Level
from dbdyno.host.journal import Journal
from dbdyno.layers.setup import Before, Running, Setup, apply
from dbdyno.layers.workload import WorkloadLayer
from tests.fakes import INSTALLATION, FakeEngine

LAYER = WorkloadLayer()
CLOSED = {"kind": "closed"}
OPEN = {"kind": "open", "rate_per_s": 100.0, "arrivals": "poisson"}
OTHER = OPEN | {"rate_per_s": 1.0, "schedule": {"kind": "constant"}}
RAMP = {"kind": "ramp", "to_per_s": 900.0, "over_s": 30.0}


def put(levels: dict[str, Level], setup: Setup) -> None:
    setup.asked = LAYER.ask(levels, setup.engine)
    apply(setup, Before.DATA)


def setup_with(load: dict[str, Any], folder: Path) -> Setup:
    job = Job(workload="fake", clients=1, options={"scale": 1}).but(load=load)
    return Setup(FakeEngine().engine, INSTALLATION, folder, cast(Journal, None), job)


@pytest.mark.parametrize(
    ("levels", "before", "after"),
    [
        ({"rate_per_s": 200.0}, OPEN, OPEN | {"rate_per_s": 200.0}),
        ({"schedule": "ramp:900/30s"}, OPEN, OPEN | {"schedule": RAMP}),
        (
            {"schedule": "points:0s=5"},
            CLOSED,
            {"kind": "open", "schedule": {"kind": "points", "points": [(0.0, 5.0)]}},
        ),
        ({"think_time": "100ms"}, CLOSED, {"kind": "closed", "think_time": 0.1}),
        (
            {"think_time": "exponential:1s"},
            CLOSED,
            {"kind": "closed", "think_time": {"mean_s": 1.0, "distribution": "exponential"}},
        ),
    ],
)
def test_when_transactions_start_is_put_into_the_job_and_proved(
    levels: dict[str, Level], before: dict[str, Any], after: dict[str, Any], tmp_path: Path
) -> None:
    setup = setup_with(before, tmp_path)
    put(levels, setup)
    assert setup.job.load == Job(workload="fake").but(load=after).load
    running = Running(setup, cast(Any, None), cast(Any, None))
    [evidence] = LAYER.prove(levels, running)
    assert evidence.in_effect
    assert evidence.effective is not None
    setup.job = setup.job.but(load=CLOSED | {"think_time": 9.0} if "think_time" in levels else OTHER)
    [evidence] = LAYER.prove(levels, running)
    assert not evidence.in_effect


def test_options_and_clients_have_places_of_their_own(tmp_path: Path) -> None:
    setup = setup_with(CLOSED, tmp_path)
    put({"clients": 8, "scale": 4}, setup)
    assert (setup.job.clients, setup.job.options, setup.job.load) == (8, {"scale": 4}, Closed())
