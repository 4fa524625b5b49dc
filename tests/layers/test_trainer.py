"""What trains a build is read from one text, and what that leaves out comes from the study."""

from __future__ import annotations

import pytest

from dbdyno.errors import UserError
from dbdyno.layers.registry import KNOBS
from dbdyno.layers.trainer import BOLT, PGO, TRANSACTIONS, run_options, trainer_of, with_trainer
from dbdyno.obtain.source.wish import BuildWish
from dbdyno.study import Factor, Workload
from tests.fakes import make_study


def test_a_trainer_without_options_has_those_of_the_studys_own_workload() -> None:
    load = Workload(name="read_only", clients=8, options={"tables": 4, "table_size": 500, "range_size": 7})
    study = make_study(workload=load)
    own, other = trainer_of(PGO, "read_only", study), trainer_of(PGO, "read_write", study)
    for trainer in (own, other):
        options = dict(trainer.options)
        assert (options["tables"], options["table_size"], options["range_size"]) == (4, 500, 7)
        assert options["point_selects"] == 10, "the workload's default"
        assert (trainer.clients, trainer.transactions) == (8, TRANSACTIONS)
    assert own.workload == "read_only" and dict(other.options)["index_updates"] == 1
    assert dict(trainer_of(PGO, "tpcb", study).options) == {
        "scale": 1,
        "simple_update": False,
        "select_only": False,
    }


def test_a_trainers_own_options_come_first() -> None:
    study = make_study(workload=Workload(name="read_only", options={"tables": 4}))
    level = "read_only tables=2 skip_trx=true zipfian_exponent=1.5 clients=3 transactions=9"
    trainer = trainer_of(PGO, level, study)
    options = dict(trainer.options)
    assert (options["tables"], options["skip_trx"], options["zipfian_exponent"]) == (2, True, 1.5)
    assert (trainer.clients, trainer.transactions) == (3, 9)
    assert "clients" not in options and "transactions" not in options


def test_variants_that_differ_in_configuration_alone_have_one_trainer() -> None:
    factors = (Factor(name="config.speed", levels=(1, 2)), Factor(name="cpu.server", levels=("all", "0")))
    study = make_study(settings={"config.page": 4, "source.origin": "x"}).model_copy(
        update={"factors": factors}
    )
    trainer = trainer_of(PGO, "tpcb", study)
    assert trainer.settings == (("config.page", 4), ("config.speed", 1))
    assert with_trainer(BuildWish(pgo="tpcb"), study).trainer == trainer
    assert with_trainer(BuildWish(), study).trainers == ()
    both = with_trainer(BuildWish(pgo="read_only", bolt="tpcb"), study)
    assert both.bolt_trainer == trainer and [one.workload for one in both.trainers] == ["read_only", "tpcb"]


def test_what_only_the_run_looks_at_shapes_no_data() -> None:
    found = run_options(trainer_of(PGO, "read_only", make_study()))
    assert "range_size" in found and "table_size" not in found


@pytest.mark.parametrize(
    ("level", "message", "hint"),
    [
        ("tpcbb", 'build.pgo: "tpcbb" is no workload', "did you mean `tpcb`?"),
        ("tpcb scale", "is no level of it", "read_write tables=4"),
        ("tpcb sclae=2", 'the workload tpcb has no option "sclae"', "did you mean `scale`?"),
        ("tpcb scale=many", '`scale`: "many" is no number', "read_write tables=4"),
        ("tpcb scale=0", "`scale`: cannot be 0", "allowed: 1 to"),
        ("tpcb scale=1 scale=2", "the option `scale` twice", "keep one"),
        ("tpcb select_only=1", "`select_only`: must be true or false", "without quotes"),
        ("tpcb transactions=0", "`transactions`: cannot be 0", "allowed: 1 to"),
        ("read_only distribution=flat", '`distribution`: cannot be "flat"', "uniform"),
    ],
)
def test_what_is_no_trainer_is_told_when_the_study_is_read(level: str, message: str, hint: str) -> None:
    for factor in (PGO, BOLT):
        mistake = KNOBS[factor].mistake(level)
        assert mistake is not None and message.replace(PGO, factor) in mistake.message
        assert hint in mistake.hint


@pytest.mark.parametrize("level", ["off", "tpcb", "tpcb  scale=2", "read_write tables=4 table_size=10000"])
def test_a_trainer_is_a_level(level: str) -> None:
    assert all(KNOBS[factor].mistake(level) is None for factor in (PGO, BOLT))


def test_a_value_of_the_study_that_the_trainer_cannot_have_is_refused() -> None:
    study = make_study(workload=Workload(name="script", options={"scale": 1_000_000}))
    with pytest.raises(UserError, match=r"build\.bolt: `scale`: cannot be 1000000"):
        trainer_of(BOLT, "tpcb", study)
