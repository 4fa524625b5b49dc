"""Figures that others published, beside ours of the same two variants.

Theirs are of another machine, so no verdict rests on them: it is said where theirs lies beside our interval,
and what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.estimate import Trials, ratio_between
from dbdyno.analyse.model import Analysis, Ratio
from dbdyno.analyse.published import PublishedBeside, PublishedPlace
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.report.document import ColumnKind, Notes, Section, TableCell, table
from dbdyno.report.words import naming, numbers
from dbdyno.report.words.remarks import cause
from dbdyno.study import Study
from dbdyno.study.published import PublishedFigure

TITLE = "Published figures beside ours"
PLACES = {
    PublishedPlace.INSIDE: "inside our interval",
    PublishedPlace.ABOVE: "outside, above it",
    PublishedPlace.BELOW: "outside, below it",
}
NOT_TOLD = "ours has no interval"
NOTE = (
    "A published figure is of another machine and often of another load: inside our interval does not mean"
    " that it is right, nor outside that it is wrong. Both columns are the variant over the other one. Our"
    " interval of the response over the baseline is the one above; the others hold together with the study's"
    " confidence."
)


def find(basis: Basis) -> tuple[PublishedBeside, ...]:
    """Each published figure with ours."""
    figures = basis.study.published
    each = confidence_each(basis.confidence, len(figures)) if figures else basis.confidence
    return tuple(_beside(basis, one, each) for one in figures)


def _beside(basis: Basis, figure: PublishedFigure, confidence: float) -> PublishedBeside:
    metric = figure.metric or basis.method.response
    ours = _ours(basis, figure, metric, confidence)
    if ours is None:
        return PublishedBeside(figure=figure, metric=metric, cause=_why_none(basis, figure, metric))
    return PublishedBeside(
        figure=figure,
        metric=metric,
        blocks=ours.pairs,
        ratio=ours.ratio,
        low=ours.low,
        high=ours.high,
        place=_place(figure, ours),
        overlap=_overlap(figure, ours),
    )


def _ours(basis: Basis, figure: PublishedFigure, metric: str, confidence: float) -> Ratio | None:
    """The response over the baseline is what its verdict rests on."""
    if metric == basis.method.response and figure.against == basis.baseline:
        return next((one.effect for one in basis.results if one.name == figure.variant), None)
    by_name: dict[str, Trials] = {one.variant.name: one for one in basis.compared}
    over, under = (by_name.get(name) for name in figure.names)
    if over is None or under is None:
        return None
    return ratio_between(metric, over, under, confidence, basis.method)


def _why_none(basis: Basis, figure: PublishedFigure, metric: str) -> str:
    results = {one.name: one for one in basis.results}
    causes = [cause(results[name]) for name in figure.names if name in results]
    return next(filter(None, causes), f"no block of both has {metric}")


def _place(figure: PublishedFigure, ours: Ratio) -> PublishedPlace | None:
    if ours.low is None or ours.high is None:
        return None
    if figure.ratio > ours.high:
        return PublishedPlace.ABOVE
    return PublishedPlace.BELOW if figure.ratio < ours.low else PublishedPlace.INSIDE


def _overlap(figure: PublishedFigure, ours: Ratio) -> bool | None:
    if figure.low is None or figure.high is None or ours.low is None or ours.high is None:
        return None
    return figure.low <= ours.high and ours.low <= figure.high


def sections(analysis: Analysis) -> Iterator[Section]:
    """A row for each, and what differs."""
    called = naming.called(analysis)
    heads = ["variant", "over", "metric", "published", "ours", "published lies", "source"]
    kinds = dict.fromkeys(("over", "metric", "published lies", "source"), ColumnKind.TEXT)
    rows = [
        [
            called.get(one.figure.variant, one.figure.variant),
            called.get(one.figure.against, one.figure.against),
            one.metric,
            _with_interval(one.figure.ratio, one.figure.low, one.figure.high),
            numbers.DASH if one.ratio is None else _with_interval(one.ratio, one.low, one.high),
            _lies(one),
            one.figure.source_text,
        ]
        for one in analysis.published
    ]
    notes = (NOTE, *_differences(analysis.study))
    yield Section(TITLE, (table(heads, rows, kinds), Notes(notes)), aside=inside_text(analysis))


def _with_interval(ratio: float, low: float | None, high: float | None) -> TableCell:
    below = () if low is None or high is None else (numbers.between_text(low, high),)
    return TableCell(numbers.ratio_text(ratio), below)


def _lies(one: PublishedBeside) -> str:
    if one.place is None:
        return one.cause or NOT_TOLD
    if one.overlap and one.place is not PublishedPlace.INSIDE:
        return f"{PLACES[one.place]}; the two intervals overlap"
    return PLACES[one.place]


def _differences(study: Study) -> Iterator[str]:
    """On what each source measured, once, and what else differs."""
    told = dict.fromkeys(
        f"{one.source_text}: on {one.hardware}{f'; {one.differs}' if one.differs else ''}."
        for one in study.published
    )
    yield from told


def inside_text(analysis: Analysis) -> str:
    """Of how many figures theirs lies inside our interval; empty where nothing is published."""
    told = Counter(one.place for one in analysis.published)
    measured = told.total() - told[None]
    if not measured:
        return "No published figure could be held against ours." if analysis.published else ""
    figures = numbers.plural(measured, "published figure")
    return f"{told[PublishedPlace.INSIDE]} of {figures} inside our interval."
