"""What a trial's wall time went into, stage by stage, and the conditions that trials ran under."""

from __future__ import annotations

import numpy as np

from dbdyno.analyse.columns import OUTCOME, Columns, Fact, Figures, Floats, Places, or_zero
from dbdyno.analyse.found import Condition, Overhead, StageTime
from dbdyno.records.record import Outcome, Record, Stage

LOAD = "load"
"""The load is part of the stage that drives it; what else that stage took is Dyno's."""

CONDITIONS = (
    *("frequency_ghz", "steal_s", "other_cpu_s", "throttled_s", "throttled_share"),
    *("round_trip_us", "round_trip_us_max", "load_host_busy_share", "load_host_steal_share"),
    "load_host_resent_share",
)


def overhead(columns: Columns, places: Places) -> Overhead | None:
    """The wall time of the measured ones of these trials; None where there is none."""
    measured = columns.having(OUTCOME, places, Outcome.MEASURED.value)
    if not len(measured):
        return None
    seconds, walls = columns.figures(SECONDS), columns.figures(WALL)["wall_s"][measured]
    beside = walls - seconds[LOAD][measured]
    total_s = sum(walls.tolist())
    return Overhead(
        trials=len(measured),
        stages=tuple(
            _stage(name, or_zero(seconds[name][measured]), total_s)
            for name in dict.fromkeys(name for names in columns.seen(STAGES, measured) for name in names)
        ),
        trial_s=_median(walls),
        overhead_s=_median(beside),
        overhead_share=sum(beside.tolist()) / total_s,
    )


def conditions(columns: Columns, places: Places) -> tuple[Condition, ...]:
    """Each condition that any measured one of these trials has a value of."""
    found = []
    for name in CONDITIONS:
        values = columns.metric(name)[places]
        known = values[~np.isnan(values)]
        if len(known):
            lowest, highest = float(known.min()), float(known.max())
            found.append(
                Condition(
                    metric=name, trials=len(known), median=_median(known), lowest=lowest, highest=highest
                )
            )
    return tuple(found)


def _median(values: Floats) -> float:
    """As `statistics.median` gives it, whose middle two are added before they are halved."""
    rising, middle = np.sort(values), len(values) // 2
    if len(values) % 2:
        return float(rising[middle])
    return float((rising[middle - 1] + rising[middle]) / 2)


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


SECONDS = Figures("stages", _seconds)
WALL = Figures("wall", lambda record: {"wall_s": sum(_seconds(record).values())})
STAGES = Fact("stages", lambda record: tuple(_seconds(record)))


def _stage(name: str, seconds: Floats, total_s: float) -> StageTime:
    return StageTime(
        name=name,
        median_s=_median(seconds),
        longest_s=float(seconds.max()),
        share=sum(seconds.tolist()) / total_s,
    )
