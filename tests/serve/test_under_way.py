"""How far a run is, on its page: the time left is that of its blocks and of what comes after them."""

from __future__ import annotations

import pytest

from dbdyno.begin.estimate import counted_s
from dbdyno.host.host_lock import Holder
from dbdyno.report.document import Document, Lines
from dbdyno.report.words.numbers import about_text
from dbdyno.serve.under_way import with_progress
from tests.analyse.factory import a_study, records_of
from tests.report.cases import analysed


@pytest.mark.parametrize("counted", [False, True])
def test_after_the_blocks_the_counts_are_left(counted: bool) -> None:
    study = a_study(blocks=2)
    study = study.but(goal=study.goal.but(counted=counted))
    records = records_of(study)
    began, ended = records[0].started_unix_s, max(record.finished_unix_s for record in records)
    live = Holder(1, 1, 0, study.title, began - 1.0, ended, "")
    report = Document(title=study.title, answer=(), sections=())
    page = with_progress(report, analysed(study, records), live, ended)
    lines = page.sections[0].body[0]
    assert isinstance(lines, Lines)
    told = " ".join(map(str, lines.lines))
    assert "4 of 4 trials have ended" in told
    left = f"About {about_text(counted_s(study))} are left" if counted else "It is about to end."
    assert left in told
