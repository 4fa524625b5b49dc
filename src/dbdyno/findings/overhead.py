"""What a trial's wall time went into, and the conditions that trials ran under: two small tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.found import HostCondition, Overhead
from dbdyno.analyse.model import Analysis
from dbdyno.analyse.split import LOAD, conditions, overhead
from dbdyno.records import metrics
from dbdyno.records.record import Stage
from dbdyno.report.document import ColumnKind, Detail, Element, Notes, Section, table
from dbdyno.report.words.numbers import plural, stage_seconds_text, tenth_text

TITLES = {
    LOAD: "load: warm-up and measured part",
    **{stage.value: f"{stage}: {stage.contents}" for stage in Stage},
}
HEADS = ("stage", "median, s", "longest, s", "share")
CONDITION_HEADS = ("condition of the measured parts", "median", "lowest", "highest")
NOTE = (
    "Shares are of the wall time of all measured trials. The first trial that needs a set of data makes it; "
    "its prepare stage contains that time."
)


def find(basis: Basis) -> Overhead | None:
    """What the stages of trials took."""
    return overhead(basis.columns, basis.shown)


def find_conditions(basis: Basis) -> tuple[HostCondition, ...]:
    """What trials met beside their load."""
    return conditions(basis.columns, basis.shown)


def sections(analysis: Analysis) -> Iterator[Section]:
    """Both tables, where any trial was measured."""
    found, conditions = analysis.overhead, analysis.conditions
    if found is None:
        return
    stages = table(HEADS, _rows(found), first=ColumnKind.TEXT, dense=True)
    beside = [table(CONDITION_HEADS, condition_rows(conditions), dense=True)] if conditions else []
    body: tuple[Element, ...] = (stages, *beside, Notes((NOTE,)))
    yield Section("What a trial takes", body, aside=title(found), detail=Detail.DETAILS)


def title(found: Overhead) -> str:
    """The whole in a sentence."""
    return (
        f"A trial takes {stage_seconds_text(found.trial_s)} s (median of {plural(found.trials, 'trial')}), "
        f"{stage_seconds_text(found.overhead_s)} s of it without load. Over all "
        f"trials, {tenth_text(found.overhead_share)} of the wall time is without load."
    )


def _rows(found: Overhead) -> list[list[str]]:
    """A row per stage, in the order of a trial."""
    return [
        [
            TITLES.get(stage.name, stage.name),
            stage_seconds_text(stage.median_s),
            stage_seconds_text(stage.longest_s),
            tenth_text(stage.share),
        ]
        for stage in found.stages
    ]


def condition_rows(found: Sequence[HostCondition]) -> list[list[str]]:
    """A row per condition, with its unit."""
    return [
        [
            _named(one.metric),
            *(metrics.find(one.metric).format(v) for v in (one.median, one.lowest, one.highest)),
        ]
        for one in found
    ]


def _named(name: str) -> str:
    metric = metrics.find(name)
    return f"{metric.title}, {metric.unit}" if metric.unit else metric.title
