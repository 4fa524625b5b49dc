"""A training is a trial of its own: of the trainer's load, on the trainer's server, and judged by its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.built import Instrumented
from dbdyno.errors import BuildFailed
from dbdyno.host.journal import open_journal
from dbdyno.obtain.source.build import Trainer
from dbdyno.obtain.source.recipe import Recipe
from dbdyno.records.record import Doubt, Outcome, PhaseRecord, Record
from dbdyno.study.front import FrontProgram
from dbdyno.trial.training import TRAINING, bench_of, transactions_of
from tests.fakes import INSTALLATION, make_bench, make_run, make_study, make_tally

TRAINER = Trainer(
    workload="read_only",
    options=(("range_size", 7), ("tables", 4)),
    settings=(("config.speed", 1),),
    clients=3,
    transactions=1000,
)


def instrumented_for(trainer: Trainer, raw: Path) -> Instrumented:
    recipe = Recipe.model_validate(
        {"engine": "fake", "program": "fake", "steps": [{"name": "x", "command": ["true"]}]}
    )
    return Instrumented(INSTALLATION, recipe, trainer, raw, {"GCOV_PREFIX": str(raw)})


def test_a_training_by_the_requests_of_a_study_goes_to_its_application(homes: Path) -> None:
    own = FrontProgram(command="served", ready="GET /")
    study = make_study(1, 2).but(fronts={"served": own}, settings={"front.kind": "served", "front.a": 1})
    by_own = TRAINER.but(workload=study.workload.name)
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal)
        found = bench_of(bench, instrumented_for(by_own, homes / "raw")).study
        of_sql = bench_of(bench, instrumented_for(TRAINER, homes / "raw")).study
    assert found.settings == {"config.speed": 1, "front.kind": "served", "front.a": 1}
    assert found.applications == ("served",) and of_sql.applications == ()
    assert of_sql.settings == {"config.speed": 1}


def test_a_training_is_of_nothing_but_its_trainers_load(homes: Path) -> None:
    study = make_study(1, 2, blocks=6)
    instrumented = instrumented_for(TRAINER, homes / "raw")
    with open_journal() as journal:
        bench = make_bench(study, make_run(study), journal)
        found = bench_of(bench, instrumented)
        other = bench_of(make_bench(study, make_run(study, "second"), journal), instrumented)
    load = found.study.workload
    assert (load.name, load.clients, load.options) == ("read_only", 3, {"range_size": 7, "tables": 4})
    assert load.run_options == {"range_size"} | load.run_options and "tables" not in load.run_options
    assert found.levels_by_layer(TRAINING) == {"config": {"speed": 1}}
    assert found.run.run != bench.run.run
    assert found.run.seed == other.run.seed, "a build does not depend on the run that made it"


def record(**changes: object) -> Record:
    return Record.model_validate(
        {
            "run": "first-training",
            "trial": 0,
            "block": 0,
            "position": 0,
            "variant": "training",
            "levels": {},
            "host": "here",
            "started_unix_s": 1.0,
            "finished_unix_s": 2.0,
            "outcome": Outcome.MEASURED,
            "phases": (PhaseRecord(name="training", tally=make_tally(operations=1000)),),
            **changes,
        }
    )


def test_a_training_that_did_its_transactions_counts() -> None:
    assert transactions_of(record(), TRAINER) == 1000
    slow_driver = PhaseRecord(
        name="training",
        tally=make_tally(operations=1000),
        doubts={Doubt.DRIVER_SATURATED: "no time left"},
    )
    found = record(outcome=Outcome.FAILED, cause="no time left", phases=(slow_driver,))
    assert transactions_of(found, TRAINER) == 1000, "how fast the driver was does not matter"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"outcome": Outcome.BROKEN, "cause": "balances_equal: 1, 2"},
            "the training by read_only failed: balances_equal: 1, 2",
        ),
        ({"outcome": Outcome.FAILED, "cause": "no server", "phases": ()}, "read_only failed: no server"),
        (
            {"phases": (PhaseRecord(name="training", tally=make_tally(operations=20)),)},
            "did 20 of 1,000 transactions in 3600 s",
        ),
        ({"trial_doubts": {Doubt.SERVER_LOG: "it was killed"}}, "without a whole profile: it was killed"),
    ],
    ids=["broken", "failed", "cut short", "not stopped"],
)
def test_any_other_end_of_a_training_is_the_cause(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BuildFailed, match=message) as failed:
        transactions_of(record(**changes), TRAINER)
    assert failed.value.hint
