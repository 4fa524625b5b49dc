"""What became of a replay, as tables."""

from __future__ import annotations

from dbdyno.findings import analyse
from dbdyno.findings import replays as part
from dbdyno.findings.replays import replays
from dbdyno.records.record import Record
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.replays_cases import played
from tests.report.forms import as_markdown, as_page, on_terminal, print_report
from tests.report.words.replay_cases import NONE

STUDY = a_study(blocks=2)


def test_a_row_tells_who_was_late_and_what_went_otherwise() -> None:
    record = records_of(STUDY)[0]
    found = replays([played(record, late_by_server=50, late_by_driver=5, rows_differ=1, unsent=0)])
    assert part.rows(found) == [["baseline", "61.50", "5 %", "0.5 %", "2.000", "2.000", "0 %", "10 %"]]
    without = replays([played(record, speed=None, server_lag_us=NONE, driver_lag_us=NONE, rows_compared=0)])
    assert part.rows(without) == [["baseline", "61.50", "–", "–", "–", "–", "0 %", "–"]]


def forms(records: list[Record]) -> list[str]:
    analysis = analyse(STUDY, a_run(STUDY), records)
    printed = on_terminal(lambda console: print_report(analysis, console, details=True))
    return [printed, as_page(analysis), as_markdown(analysis)]


def test_each_form_of_report_has_them_where_a_recording_was_played() -> None:
    assert all(part.TITLE in form for form in forms([played(record) for record in records_of(STUDY)]))
    assert not any(part.TITLE in form for form in forms(records_of(STUDY)))
