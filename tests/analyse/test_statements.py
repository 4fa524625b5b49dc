"""Time by statement: what the trials of a variant have counted, per transaction."""

from __future__ import annotations

import pytest

from dbdyno.findings import analyse
from dbdyno.findings.statements import statement_times
from tests.analyse.factory import a_run, a_study, broken, records_of
from tests.analyse.statements_cases import a_statement, timed

STUDY = a_study(blocks=2)
RECORDS = [record for record in records_of(STUDY) if record.variant == "baseline"]


def test_a_kind_has_its_share_of_a_transaction() -> None:
    first = timed(RECORDS[0], SELECT=a_statement(200, 4_000.0), COMMIT=a_statement(100, 30_000.0))
    second = timed(RECORDS[1], SELECT=a_statement(300, 6_000.0, errors=3))
    [found] = statement_times([first, second], 0.95)
    commit, select = found.kinds
    assert (found.variant, found.trials) == ("baseline", 2)
    assert (commit.text, commit.per_op, commit.errors) == ("COMMIT", 0.5, 0)
    assert commit.us_per_op.mean == pytest.approx(150.0), "the second trial never met it"
    assert (select.text, select.per_op, select.errors) == ("SELECT", 2.5, 3)
    assert select.us_per_op.mean == pytest.approx(50.0)
    assert select.us_per_op.low is not None and select.us_per_op.low < 50.0


def test_only_measured_trials_that_timed_their_statements_count() -> None:
    one = timed(RECORDS[0], SELECT=a_statement(100, 4_000.0))
    untimed, void = RECORDS[1], broken("account 1, history 2")(timed(RECORDS[1], COMMIT=a_statement(1, 1.0)))
    for other in (untimed, void):
        [found] = statement_times([one, other], 0.95)
        assert (found.trials, [kind.text for kind in found.kinds]) == (1, ["SELECT"])
    assert statement_times([untimed, void], 0.95) == ()


def test_an_analysis_holds_them_in_the_order_of_the_study() -> None:
    records = [timed(record, SELECT=a_statement(100, 4_000.0)) for record in records_of(STUDY)]
    analysis = analyse(STUDY, a_run(STUDY), records)
    assert [one.variant for one in analysis.statements] == [one.name for one in analysis.variants]
    untimed = analyse(STUDY, a_run(STUDY), records_of(STUDY))
    assert "statements" not in untimed.model_dump()
