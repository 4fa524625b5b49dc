"""What the tests of frontier share with others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dbdyno.analyse.model import Frontier
from dbdyno.driver.tally import Recall
from dbdyno.findings import analyse
from dbdyno.records.record import Record
from dbdyno.study import Design
from tests.analyse.factory import a_run, a_study, counted, records_of
from tests.fakes import a_kind

EFFORTS = [10, 20, 40, 80]


FACTORS = {"workload.ef": EFFORTS, "config.cache": ["16M", "4G"]}


RECALL = {10: 0.7, 20: 0.85, 40: 0.92, 80: 0.97}


def scored(record: Record, recall: float, queries_per_s: float) -> Record:
    assert record.tally is not None
    operations = round(queries_per_s * record.tally.duration_s)
    search = a_kind(operations, record.tally.duration_s, record.tally.latency_us)
    answers = Recall(count=100, mean=recall, min=recall, p1=recall, p5=recall, p10=recall, p50=recall)
    return counted(record, recall=answers, by_transaction={"search": search}, workload="vector_search")


def true_speed(levels: Mapping[str, Any]) -> float:
    return (2.0 if levels["config.cache"] == "4G" else 1.0) * 40_000 / float(levels["workload.ef"])


def found(
    blocks: int = 4,
    change: Any = lambda record: record,
    factors: Mapping[str, Any] = FACTORS,
    design: Design = Design.FACTORIAL,
    baselines: int = 1,
) -> Frontier | None:
    study = a_study(factors, design=design, blocks=blocks).but(baselines=baselines)
    records = []
    for record in records_of(study):
        effort = int(record.levels.get("workload.ef", 10))
        noise = 1 + 0.02 * math.sin(7 * record.block + effort)
        speed = true_speed({"config.cache": "16M", "workload.ef": effort} | record.levels) * noise
        records.append(change(scored(record, RECALL[effort] + 0.001 * (record.block % 2), speed)))
    return analyse(study, a_run(study), records).frontier
