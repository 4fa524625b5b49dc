"""What the tests of reports share with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno.host.fingerprint import Host
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.records.run import ComparisonRun, Run
from dbdyno.records.store import Store
from tests.cli.calls import STUDY
from tests.fakes import make_tally

NAME = "261121-120000-abcd"


def second(operations: int) -> dict[str, Any]:
    """The only second of a tally's series."""
    latencies = {"p50_us": 800.0, "p99_us": 2500.0, "max_us": 4000.0}
    return {"second": 0, "phase": "measured", "operations": operations, "errors": 0, **latencies}


@pytest.fixture
def run(homes: Path) -> Run:
    """A run of four trials in the store, the second variant 10 % faster in both blocks."""
    run = ComparisonRun(
        run=NAME,
        study_path="study.toml",
        study_text=STUDY,
        study_digest="d",
        seed=1,
        blocks=2,
        created_unix_s=1.0,
        dyno_version="0",
        host=Host(name="here"),
    )
    plan = make_plan(study_of(run), Order.of(run))
    with Store(store_url()) as store:
        store.add_run(run)
        for trial in plan.trials:
            operations = (1000 if trial.variant.name == "baseline" else 1100) + trial.block
            tally = make_tally(operations=operations, series=[second(operations)])
            store.add_record(
                Record(
                    run=NAME,
                    trial=trial.index,
                    block=trial.block,
                    position=trial.position,
                    variant=trial.variant.name,
                    levels=trial.variant.levels,
                    host="here",
                    started_unix_s=1.0,
                    finished_unix_s=2.0,
                    outcome=Outcome.MEASURED,
                    phases=(PhaseRecord(name="load", tally=tally),),
                )
            )
        store.finish_run(NAME)
    return run
