"""What a trial's wall time went into, stage by stage, and the conditions that trials ran under."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from dbdyno.analyse.times import Condition, Overhead, StageTime
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.stage import Stage

LOAD = "load"
"""The load is part of the stage that drives it; what else that stage took is Dyno's."""

CONDITIONS = ("frequency_ghz", "steal_s", "other_cpu_s", "throttled_s", "throttled_share")


def overhead(records: Sequence[Record]) -> Overhead | None:
    """The wall time of the measured trials; None where there is none."""
    trials = [_seconds(record) for record in records if record.outcome is Outcome.MEASURED]
    if not trials:
        return None
    walls = [sum(seconds.values()) for seconds in trials]
    beside = [wall - seconds[LOAD] for wall, seconds in zip(walls, trials, strict=True)]
    return Overhead(
        trials=len(trials),
        stages=tuple(
            _stage(name, trials, sum(walls)) for name in dict.fromkeys(n for t in trials for n in t)
        ),
        trial_s=median(walls),
        overhead_s=median(beside),
        overhead_share=sum(beside) / sum(walls),
    )


def conditions(records: Sequence[Record]) -> tuple[Condition, ...]:
    """Each condition that any measured trial has a value of."""
    measured = [record for record in records if record.outcome is Outcome.MEASURED]
    return tuple(
        Condition(
            metric=name, trials=len(values), median=median(values), lowest=min(values), highest=max(values)
        )
        for name in CONDITIONS
        if (values := [v for record in measured if (v := metrics.find(name).read(record)) is not None])
    )


def _seconds(record: Record) -> dict[str, float]:
    """Seconds of each stage in its order, the load apart from the stage that drove it."""
    load_s = record.load_s
    parts: dict[str, float] = {}
    for stage, seconds in record.stages_s.items():
        if stage == Stage.DRIVE:
            parts[LOAD] = min(load_s, seconds)
            seconds -= parts[LOAD]
        parts[stage] = seconds
    return {LOAD: load_s, **parts} if LOAD not in parts else parts


def _stage(name: str, trials: Sequence[dict[str, float]], total_s: float) -> StageTime:
    seconds = [trial.get(name, 0.0) for trial in trials]
    return StageTime(
        name=name, median_s=median(seconds), longest_s=max(seconds), share=sum(seconds) / total_s
    )
