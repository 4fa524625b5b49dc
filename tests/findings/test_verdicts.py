"""The table of verdicts: what failed and what was tried again stand in it where variants differ."""

from __future__ import annotations

from dbdyno.findings import run
from tests.analyse.factory import a_study, changed, records_of
from tests.report.cases import CASES, analysed
from tests.report.shown import in_every_form

FAST = "config.page_cache=64k"


def test_errors_and_retries_are_columns_where_a_variant_has_more_of_them() -> None:
    study = a_study({"config.page_cache": ["2k", "64k"]}, blocks=12)
    records = [
        one
        if one.variant != FAST or one.tally is None
        else changed(one, tally=one.tally.but(errors={"1020 record changed": one.tally.operations}))
        for one in records_of(study, {FAST: 0.5})
    ]
    found = analysed(study, records)
    for form in in_every_form(run.document(found)):
        assert "failed" in form and "50 %" in form and "0 %" in form
    retried = [
        one
        if one.variant != FAST or one.tally is None
        else changed(one, tally=one.tally.but(errors={"1213 deadlock": 3}, retries=one.tally.operations))
        for one in records
    ]
    for form in in_every_form(run.document(analysed(study, retried))):
        assert "retried" in form and "100 %" in form


def test_without_errors_no_column_tells_of_them() -> None:
    terminal, page, markdown = in_every_form(run.document(CASES["guards"]()))
    assert not any(" retried " in form for form in (terminal, page, markdown))
