"""What the tests of replays share with others."""

from __future__ import annotations

from dbdyno.records.record import Record
from tests.analyse.factory import counted
from tests.report.words.replay_cases import REPLAY


def played(record: Record, **changes: object) -> Record:
    return counted(record, replay=REPLAY.but(**changes))
