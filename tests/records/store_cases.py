"""What the tests of store share with others."""

from __future__ import annotations

from dbdyno.records.record import Outcome, Record


def make_record(trial: int, outcome: Outcome = Outcome.MEASURED, log: str = "") -> Record:
    return Record(
        run="first",
        trial=trial,
        block=0,
        position=trial,
        variant="baseline",
        levels={"config.speed": 1},
        host="here",
        started_unix_s=1.5,
        finished_unix_s=2.5,
        outcome=outcome,
        server_log=log,
    )
