"""Data that came back by two ways where they should have come by one."""

from __future__ import annotations

from dbdyno.analyse.columns import OfRecords
from dbdyno.analyse.resets import mixed_resets
from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.records.record import Doubt, Record
from dbdyno.study import Design
from tests.analyse.factory import a_run, a_study, records_of


def came_by(record: Record, way: str) -> Record:
    reset: dict[str, Level] = {"way": way, "seconds": 0.1}
    return record.but(reset=reset)


def test_one_copy_among_reflinks_is_told() -> None:
    study = a_study()
    records = [came_by(record, "reflink") for record in records_of(study)]
    assert mixed_resets(OfRecords(records)) == {}
    records[3] = came_by(records[3], "copy")
    assert mixed_resets(OfRecords(records)) == {records[3].trial: "by copy, where most came by reflink"}
    analysis = analyse(study, a_run(study), records)
    warned = [trial.record.trial for trial in analysis.trials if Doubt.MIXED_RESETS in trial.warnings]
    assert warned == [records[3].trial]


def test_other_storage_may_come_by_another_way() -> None:
    study = a_study({"storage.filesystem": ["host", "xfs"], "config.a": [1, 2]}, Design.FACTORIAL)
    ways = {"host": "copy", "xfs": "image copy"}
    records = [came_by(one, ways[str(one.levels["storage.filesystem"])]) for one in records_of(study)]
    assert mixed_resets(OfRecords(records)) == {}
