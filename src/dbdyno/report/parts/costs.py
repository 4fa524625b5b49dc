"""Every metric beside the response that a variant was compared in: for those who ask what a gain costs."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.model import Analysis, VariantResult
from dbdyno.records import metrics
from dbdyno.records.metrics import Metric
from dbdyno.report.document import Cell, Column, Detail, Kind, Notes, Row, Section, Table
from dbdyno.report.parts.verdicts import looks
from dbdyno.report.words import numbers
from dbdyno.report.words.verdicts import ranked


def sections(analysis: Analysis) -> Iterator[Section]:
    """A row for each variant, a column for each metric."""
    names = dict.fromkeys(ratio.metric for variant in analysis.variants for ratio in variant.costs)
    if not names:
        return
    costs = [metrics.find(name) for name in names]
    heads = (Column(f"{cost.title}, {cost.unit}".strip(", ")) for cost in costs)
    shown = [variant for variant in (analysis.baseline, *ranked(analysis)) if variant.summaries]
    rows: tuple[Row, ...] = tuple(
        (variant.name, *(_cell(variant, cost) for cost in costs)) for variant in shown
    )
    made = Table((Column("variant", Kind.NAME), *heads), rows, dense=True, looks=looks(shown))
    note = Notes(("Mean over trials; small: ratio to the baseline and its interval, each by itself.",))
    yield Section("Costs", (made, note), detail=Detail.PAGE)


def _cell(variant: VariantResult, cost: Metric) -> Cell:
    summary, ratio = variant.summary(cost.name), variant.cost(cost.name)
    below = (numbers.ratio_text(ratio.ratio), numbers.interval_text(ratio)) if ratio else ()
    return Cell(cost.format(summary.mean) if summary else numbers.DASH, below)
