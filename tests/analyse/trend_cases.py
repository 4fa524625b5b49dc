"""What the tests of trend share with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.analyse import Analysis
from dbdyno.analyse.model import Ratio, Role, Summary, Verdict
from dbdyno.analyse.trend import RunRatio, Trend, TrendRun, trend
from dbdyno.findings import analyse
from dbdyno.records.circumstances import Circumstance
from dbdyno.records.run import SourceCommit
from tests.analyse.factory import Change, a_run, a_study, records_of

STUDY = a_study()


VARIANT = "config.page_cache=64k"


SAME = dict.fromkeys(Circumstance, "the same")


DAY_S = 86_400.0


def a_ratio(value: float) -> Ratio:
    return Ratio(
        metric="throughput", pairs=6, ratio=value, low=value * 0.97, high=value * 1.03, confidence=0.95
    )


def a_speed(mean: float) -> Summary:
    return Summary(metric="throughput", trials=6, mean=mean, low=mean - 50.0, high=mean + 50.0)


def a_trend_run(
    day: int,
    value: float | None,
    other: Mapping[Circumstance, str] | None = None,
    note: str = "",
    commit: SourceCommit | None = None,
) -> TrendRun:
    """A run of one candidate with this ratio, made without records."""
    effect = None if value is None else a_ratio(value)
    ratio = RunRatio(variant=VARIANT, role=Role.CANDIDATE, verdict=Verdict.FASTER, effect=effect)
    return TrendRun(
        run=f"run-{day}",
        began_unix_s=1_760_000_000.0 + day * DAY_S,
        name="",
        note=note,
        blocks=6,
        host="bench-1",
        engine="firebird 5.0.4",
        commit=commit,
        circumstances={**SAME, **(other or {})},
        baseline=a_speed(4200.0 + 100.0 * (day % 3)),
        doubtful=0,
        ratios=(ratio,),
    )


def a_commit(number: int, changed: int = 0) -> SourceCommit:
    """One of a row of commits, an hour apart."""
    return SourceCommit(
        repository="/src/firebird",
        hash=f"{number:040x}",
        committed_unix_s=1_750_000_000.0 + 3600.0 * number,
        changed=changed,
    )


def followed(values: Sequence[float | None], changed_at: int | None = None) -> Trend:
    """The trend of runs with these ratios; from `changed_at` on another engine answered."""
    newer = {Circumstance.ENGINE: "firebird 5.0.5"}
    runs = [
        a_trend_run(day, value, newer if changed_at is not None and day >= changed_at else None)
        for day, value in enumerate(values)
    ]
    return trend(STUDY, runs, {})


def analysed(
    name: str = "run", change: Change | None = None, variant: str = "baseline", **of_run: Any
) -> Analysis:
    run = a_run(STUDY).but(run=name, **of_run)
    return analyse(STUDY, run, records_of(STUDY, {VARIANT: 1.5}, {variant: change} if change else None))
