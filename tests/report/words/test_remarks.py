"""Every doubt has its advice."""

from __future__ import annotations

from dbdyno.records.record import Doubt
from dbdyno.report.words import remarks


def test_every_warning_has_its_text_and_its_next_step() -> None:
    assert set(remarks.WARNINGS) == set(Doubt)
    assert all(advice.text and advice.next_step for advice in remarks.WARNINGS.values())
