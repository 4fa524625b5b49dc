"""Invariants become checks under names that say when they were looked at."""

from __future__ import annotations

from dbdyno.driver.load import Invariant
from dbdyno.records.record import Check
from dbdyno.trial.invariants import checks_of

EQUAL = Invariant(name="balances_equal", holds=False, detail="7 against 8")


def test_a_check_says_what_was_found_and_after_what() -> None:
    plain = Check(name="balances_equal", holds=False, detail="7 against 8")
    assert checks_of([EQUAL]) == (plain,)
    [later] = checks_of([EQUAL], after="cut")
    assert later == plain.but(name="balances_equal_after_cut")
