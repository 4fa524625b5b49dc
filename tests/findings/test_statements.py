"""Time by statement, as tables."""

from __future__ import annotations

from dbdyno.analyse.found import Estimate, StatementTime, StatementTimes
from dbdyno.findings import analyse, statements
from dbdyno.records.record import Record
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.statements_cases import a_statement, timed
from tests.report.cases import HOSTILE
from tests.report.forms import as_markdown, as_page, on_terminal, print_report, print_sections

STUDY = a_study(blocks=2)


def a_kind(text: str, mean: float, half: float | None = None) -> StatementTime:
    low, high = (None, None) if half is None else (mean - half, mean + half)
    estimate = Estimate(name="us_per_op", mean=mean, low=low, high=high, trials=6)
    return StatementTime(text=text, per_op=2.0, us_per_op=estimate, errors=0)


def times(variant: str, *kinds: StatementTime) -> StatementTimes:
    return StatementTimes(variant=variant, trials=6, kinds=kinds)


def test_the_kinds_of_variants_stand_beside_each_other_by_their_text() -> None:
    baseline = times("baseline", a_kind("COMMIT", 300.0, 5.0), a_kind("SELECT ?", 50.0))
    other = times("other", a_kind("SELECT ?", 400.0), a_kind("BEGIN", 1.0))
    table = statements.kinds([baseline, other])
    assert [column.head for column in table.columns] == ["statement", "per op", "baseline", "other"]
    assert table.rows == (
        ["SELECT ?", "2.000", "50.00", "400.0"],
        ["COMMIT", "1.000", "300.0 ±5.0", "–"],
        ["BEGIN", "1.000", "–", "1.000"],
    )


def test_kinds_beyond_the_most_are_summed_up() -> None:
    many = times("baseline", *(a_kind(f"SELECT {number}", 1000.0 - number) for number in range(20)))
    rows = statements.kinds([many]).rows
    assert len(rows) == statements.KINDS_MOST + 1
    assert rows[-1] == ["5 further kinds", "", "4,915"]


def forms(records: list[Record]) -> list[str]:
    """The report on a terminal, as a page and as Markdown."""
    analysis = analyse(STUDY, a_run(STUDY), records)
    printed = on_terminal(lambda console: print_report(analysis, console, details=True))
    return [printed, as_page(analysis), as_markdown(analysis)]


def test_each_form_of_report_shows_them_where_statements_were_timed() -> None:
    found = {HOSTILE: a_statement(100, 4_000.0), "COMMIT": a_statement(100, 9_000.0)}
    printed, page, text = shown = forms([timed(record, **found) for record in records_of(STUDY)])
    assert all(statements.TITLE in form for form in shown)
    assert "\x1b" not in printed and "<script>alert" not in page and "<script>" not in text
    assert not any(statements.TITLE in form for form in forms(records_of(STUDY)))


def test_more_variants_than_a_terminal_has_columns_for_are_left_to_the_page() -> None:
    found = [times(f"variant {number}", a_kind("COMMIT", 300.0)) for number in range(5)]
    printed = on_terminal(lambda console: print_sections(statements.sections(found), console), 80)
    assert "for 5 variants" in printed and "COMMIT" not in printed
