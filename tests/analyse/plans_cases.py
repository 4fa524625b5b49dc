"""What the tests of plans share with others."""

from __future__ import annotations

from dbdyno.engines.facts import PlanStep
from dbdyno.records.record import Plans, Record, StatementPlan
from dbdyno.trial.around_load import planned

TEXT = "SELECT name FROM users WHERE id = ?"


BY_INDEX = PlanStep("index scan users_pkey", ("index cond (id = ?)",))


BY_SCAN = PlanStep("seq scan users", ("filter (id = ?)",))


INSERT = planned("q4", "INSERT INTO log VALUES (?)", (PlanStep("insert log"),))


def asked(record: Record, step: PlanStep, *others: StatementPlan) -> Record:
    """The record of a trial whose engine told this plan of the statement `q3`."""
    statements = (planned("q3", TEXT, (step,)), *others)
    return record.but(plans=Plans(statements=statements))
