"""A budget is fitted to what earlier runs of the load found here, and says what it rests on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbdyno.analyse.quantiles import Spreads
from dbdyno.calibrate.finding import STARTS_SD
from dbdyno.calibrate.kept import calibrated_host
from dbdyno.host.fingerprint import host_identity
from dbdyno.plan.budget import costs_of, fitted_to_budget, guessed
from dbdyno.prepare_run.adapted import adapted, budget_text
from dbdyno.prepare_run.stored_run import BLOCKS_SUPPOSED, estimate_basis
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.records.run import Calibrated
from dbdyno.records.store import Store
from dbdyno.study import Arrangement, Study
from tests.analyse.factory import a_run
from tests.calibrate.kept_cases import a_calibration
from tests.cli.calls import dyno
from tests.fakes import a_slice, make_tally
from tests.study_texts import STUDY

BLOCKS, SLICES, SLICE_S = 200, 8, 0.5
STARTS, SECONDS = 0.03, 0.04


@pytest.fixture
def store(homes: Path) -> Iterator[Store]:
    with Store(store_url()) as opened:
        yield opened


@pytest.fixture
def study(homes: Path) -> Study:
    path = homes / "study.toml"
    path.write_text(STUDY.replace('"0.5s"', '"20s"'))
    return study_at(path).but(arrangement=Arrangement.SIDE_BY_SIDE)


def keep(store: Store, study: Study, name: str, starts: float = STARTS, **of_run: Any) -> None:
    """A run of the study on this host whose servers spread so from start to start."""
    own = {
        "run": name, "host": host_identity(), "created_unix_s": time.time(), "blocks": BLOCKS,
        "arrangement": Arrangement.SIDE_BY_SIDE, **of_run,
    }  # fmt: skip
    store.add_run(a_run(study).model_copy(update=own))
    random = np.random.default_rng(list(name.encode()))
    for variant in ("baseline", "config.synchronous=OFF"):
        logs = random.normal(0, starts, (BLOCKS, 1))
        logs = logs + random.normal(0, SECONDS / np.sqrt(SLICE_S), (BLOCKS, SLICES))
        for block, row in enumerate(logs):
            store.add_record(a_record(name, variant, block, row))


def a_record(run: str, variant: str, block: int, logs: np.ndarray[Any, Any]) -> Record:
    counts = np.round(1e5 * np.exp(logs) * SLICE_S).astype(int).tolist()
    slices = tuple(
        a_slice(started_unix_s=float(place), duration_s=SLICE_S, operations=count)
        for place, count in enumerate(counts)
    )
    tally = make_tally(operations=sum(counts), duration_s=SLICE_S * SLICES, slices=slices)
    return Record(
        run=run, trial=2 * block + (variant != "baseline"), block=block, position=0, variant=variant,
        levels={}, host="here", started_unix_s=0.0, finished_unix_s=SLICE_S * SLICES + 0.9,
        outcome=Outcome.MEASURED, phases=(PhaseRecord(name="load", tally=tally),),
    )  # fmt: skip


def test_without_runs_of_the_load_the_spreads_are_a_guess_and_said_to_be_one(
    store: Store, study: Study
) -> None:
    basis = estimate_basis(study, store, None)
    assert not basis.measured and basis.spreads == guessed(study)
    assert (
        basis.words.startswith("fitted to guessed spreads, 2% from start to start") and "thumb" in basis.words
    )
    assert "if ratios vary by 5%" in budget_text(study, basis)
    assert estimate_basis(study, None, None) == basis


def test_spreads_are_those_that_earlier_runs_of_the_load_found(store: Store, study: Study) -> None:
    keep(store, study, "one")
    keep(store, study, "two", starts=0.05)
    basis = estimate_basis(study, store, None)
    assert basis.measured and basis.words.startswith(
        "spreads by 2 earlier runs of this load here, the latest of"
    )
    supposed = BLOCKS_SUPPOSED * STARTS_SD**2 / (2 * BLOCKS + BLOCKS_SUPPOSED)
    assert basis.spreads.starts**2 == pytest.approx((0.03**2 + 0.05**2) / 2 + supposed, rel=0.25)
    assert basis.spreads.seconds == pytest.approx(SECONDS, rel=0.05)
    told = budget_text(study, basis)
    assert "half of an interval's width: about ±" in told and "if ratios vary" not in told


def test_runs_of_another_load_or_host_or_arrangement_say_nothing(store: Store, study: Study) -> None:
    other_host = host_identity().but(name="elsewhere")
    more_clients = study.but(text=study.text.replace("[workload]", "[workload]\nclients = 7"))
    keep(store, study, "elsewhere", host=other_host)
    keep(store, study, "in-turn", arrangement=Arrangement.ONE_AFTER_THE_OTHER)
    keep(store, study, "bound", calibrated=Calibrated(made_unix_s=1.0, settings={"cpu.server": "0"}))
    keep(store, more_clients, "more-clients")
    keep(store, study.but(text="title = 3"), "unreadable")
    assert not estimate_basis(study, store, None).measured


def test_a_calibration_stands_in_until_a_run_with_its_binding_was_measured(
    store: Store, study: Study
) -> None:
    load = study.workload
    made = a_calibration(
        engine="sqlite", workload=load.name, clients=load.clients, options=dict(load.options),
        place=calibrated_host(host_identity()),
    )  # fmt: skip
    keep(store, study, "unbound")
    basis = estimate_basis(study, store, made)
    assert basis.spreads == made.best.spreads and basis.words.startswith("spreads by the calibration")
    keep(store, study, "bound", calibrated=made.used)
    assert estimate_basis(study, store, made).words.startswith("spreads by 1 earlier run of this load")


def test_a_fit_to_what_was_measured_needs_less_time_than_a_guess_that_misses(study: Study) -> None:
    """Servers that start alike are started less often: the width at an hour, by the spreads as they are."""
    as_they_are, costs = Spreads(starts=0.002, seconds=0.12), costs_of(study, 2.5)

    def variance(fit: Study) -> float:
        return costs.half_width(fit.blocks, fit.workload.duration_s, as_they_are) ** 2

    guess, measured = (fitted_to_budget(study, 3600.0, 2.5, spreads) for spreads in (None, as_they_are))
    assert measured.blocks < guess.blocks
    assert variance(guess) / variance(measured) > 1.1


def test_a_plan_tells_the_fit_of_the_run_and_makes_no_store(study: Study, homes: Path) -> None:
    place = Path(store_url().removeprefix("sqlite:///"))
    assert "fitted to guessed spreads" in " ".join(
        dyno("plan", str(study.path), "--budget", "5m").stdout.split()
    )
    assert not place.exists()
    with Store(store_url()) as store:
        asked = study_at(Path(study.path))
        keep(store, asked, "one")
        here = adapted(asked, 300.0, store=store)
    assert here.basis is not None and here.basis.measured
    told = " ".join(dyno("plan", str(study.path), "--budget", "5m").stdout.split())
    assert budget_text(here.study, here.basis) in told
