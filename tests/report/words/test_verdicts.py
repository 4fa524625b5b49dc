"""Every verdict has its look."""

from __future__ import annotations

from dbdyno.analyse.model import Verdict
from dbdyno.report.words import verdicts


def test_every_verdict_has_its_look() -> None:
    assert set(verdicts.LOOKS) == set(Verdict)
