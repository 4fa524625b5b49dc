"""The frontier of recall against speed: in words and as a table.

Recall against speed: how many queries per second are had at a given recall.

In each block, the trials that differ in nothing but the search's effort are points of recall and log queries
per second. Speed cannot rise with recall, so the points are made monotone by isotonic regression (pool
adjacent violators: Ayer et al., Ann. Math. Stat. 26, 1955), which averages noise where a Pareto front would
keep its luckiest points. Between neighbouring points the logarithm is interpolated by recall, never beyond
the last one. The block is the unit of inference, as everywhere: the figure is the geometric mean over
blocks, with a Student t interval of the logs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import Block
from dbdyno.analyse.estimate import Estimator, Trials, summary_of
from dbdyno.analyse.found import EFFORTS
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import Frontier, FrontierCurve, FrontierPoint, FrontierReading, Ratio, Reach, Role
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Level, level_shown, level_text
from dbdyno.records import metrics
from dbdyno.report.document import Figure, Notes, Row, Section, Table, TableCell, table
from dbdyno.report.words import naming, numbers
from dbdyno.study import Study

RECALLS = (0.8, 0.9, 0.95, 0.99)
RECALL, SPEED = "recall", "queries_per_s"

Points = Sequence[tuple[float, float]]
"""Recall and queries per second."""


def frontier(study: Study, trials: Sequence[Trials], estimator: Estimator) -> Frontier | None:
    """The frontier of a study that varies the search's effort; None where it does not, or nothing was
    scored. The effects of all curves at all recalls hold together.
    """
    factor = next((name for name in EFFORTS if any(each.name == name for each in study.factors)), None)
    if factor is None:
        return None
    groups = [group for group in _groups(factor, trials) if len(group) > 1]
    blocks = {block for group in groups for each in group for block in each.values(RECALL)}
    if not blocks:
        return None
    each = confidence_each(study.goal.confidence, (len(groups) - 1) * len(RECALLS))
    at = [{recall: _at(recall, group) for recall in RECALLS} for group in groups]
    return Frontier(
        factor=factor,
        recalls=RECALLS,
        curves=tuple(
            FrontierCurve(
                levels=_without(factor, group[0].variant.levels),
                points=_points(factor, group, study.goal.confidence),
                readings=tuple(
                    _reading(recall, found[recall], at[0][recall], estimator, each, index == 0)
                    for recall in RECALLS
                ),
            )
            for index, (group, found) in enumerate(zip(groups, at, strict=True))
        ),
        blocks=len(blocks),
        confidence=study.goal.confidence,
    )


def queries_per_s_at(recall: float, points: Points) -> tuple[float | None, Reach]:
    """The speed at a recall on the line through one block's points; None where the line does not reach it."""
    ordered = sorted(points)
    recalls = np.array([point[0] for point in ordered])
    if recall > recalls[-1]:
        return None, Reach.BELOW
    if recall < recalls[0]:
        return None, Reach.ABOVE
    # Here, because it takes longer to import than most commands run.
    from scipy.optimize import isotonic_regression

    logs = isotonic_regression([math.log(point[1]) for point in ordered], increasing=False).x
    # The slope between two recalls that are all but equal overflows.
    speed_log = float(np.clip(np.interp(recall, recalls, logs), logs[-1], logs[0]))
    return math.exp(speed_log), Reach.REACHED


def _groups(factor: str, trials: Sequence[Trials]) -> list[list[Trials]]:
    """Variants that differ in the effort alone, the baseline's first."""
    groups: dict[tuple[tuple[str, Level], ...], list[Trials]] = {}
    for each in trials:
        if each.role is not Role.TWIN and each.variant.levels.get(factor) is not None:
            groups.setdefault(tuple(_without(factor, each.variant.levels).items()), []).append(each)
    return list(groups.values())


def _without(factor: str, levels: Mapping[str, Level]) -> dict[str, Level]:
    return {name: level for name, level in levels.items() if name != factor}


def _points(factor: str, group: Sequence[Trials], confidence: float) -> tuple[FrontierPoint, ...]:
    points = []
    for each in group:
        recall = summary_of(RECALL, each.values(RECALL), confidence)
        speed = summary_of(SPEED, each.values(SPEED), confidence)
        if recall is not None and speed is not None:
            effort = each.variant.levels[factor]
            points.append(
                FrontierPoint(effort=effort, variant=each.variant.name, recall=recall, queries_per_s=speed)
            )
    return tuple(sorted(points, key=lambda point: (point.recall.mean, point.variant)))


def _at(recall: float, group: Sequence[Trials]) -> dict[Block, tuple[float | None, Reach]]:
    """The speed at a recall by block, over the blocks in which at least two efforts were measured."""
    by_block: dict[Block, list[tuple[float, float]]] = {}
    for each in group:
        speeds = each.values(SPEED)
        for block, found in each.values(RECALL).items():
            if usable(speeds.get(block)):
                by_block.setdefault(block, []).append((found, speeds[block]))
    return {
        block: queries_per_s_at(recall, points)
        for block, points in sorted(by_block.items())
        if len(points) > 1
    }


def _reading(
    recall: float,
    found: Mapping[Block, tuple[float | None, Reach]],
    first: Mapping[Block, tuple[float | None, Reach]],
    estimator: Estimator,
    confidence_of_effect: float,
    is_first: bool,
) -> FrontierReading:
    """One cell of the table. A recall that one block misses is not reached: the others would be the luckier
    ones.
    """
    logs = {block: math.log(speed) for block, (speed, _) in found.items() if speed is not None}
    missed = {reach for _, reach in found.values() if reach is not Reach.REACHED}
    if missed or not logs:
        reach = Reach.IN_PART if logs or len(missed) > 1 else next(iter(missed), Reach.BELOW)
        return FrontierReading(recall=recall, reach=reach, blocks=len(logs))
    theirs = {block: math.log(speed) for block, (speed, _) in first.items() if speed is not None}
    pairs = {block: logs[block] - theirs[block] for block in logs.keys() & theirs.keys()}
    all_reach = all(speed is not None for speed, _ in first.values())
    return FrontierReading(
        recall=recall,
        reach=Reach.REACHED,
        blocks=len(logs),
        queries_per_s=estimator.ratio(SPEED, logs, estimator.method.confidence),
        effect=None if is_first or not all_reach else estimator.ratio(SPEED, pairs, confidence_of_effect),
    )


HEADLINE_RECALL = 0.9


def find(basis: Basis) -> Frontier | None:
    """Recall against speed, where the study varies what trades one for the other."""
    return frontier(basis.study, basis.compared, basis.estimator)


def sections(frontier: Frontier) -> Iterator[Section]:
    """The sentence, the figure and the table."""
    names = [name(curve) for curve in frontier.curves]
    measured = [row for curve in frontier.curves for row in points(curve)]
    body = (
        Figure("dbdyno.report.figures.charts:frontier", (frontier.factor, names, measured)),
        readings(frontier),
        Notes((note(frontier),)),
    )
    yield Section("Recall against speed", body, aside=title(frontier))


def name(curve: FrontierCurve) -> str:
    """A curve by what sets it apart: the levels of the other factors."""
    parts = [f"{naming.factor_text(factor)}={level_shown(level)}" for factor, level in curve.levels.items()]
    return ", ".join(parts) or "all trials"


def title(frontier: Frontier) -> str:
    """What is had at the recall that most people ask for."""
    said = [
        (curve, reading)
        for curve in frontier.curves
        for reading in curve.readings
        if reading.recall == HEADLINE_RECALL and reading.queries_per_s is not None
    ]
    if not said:
        return f"No curve reaches a recall of {HEADLINE_RECALL:g} in every block."
    parts = [f"{_speed(reading.queries_per_s.ratio)}/s with {name(curve)}" if len(frontier.curves) > 1
             else f"{_speed(reading.queries_per_s.ratio)}/s"
             for curve, reading in said if reading.queries_per_s is not None]  # fmt: skip
    return f"Queries at a recall of {HEADLINE_RECALL:g}: {', '.join(parts)}."


def readings(frontier: Frontier) -> Table:
    """A row per curve: its name, then a cell per recall."""
    heads = ["queries per second", *(f"recall {recall:g}" for recall in frontier.recalls)]
    rows: list[Row] = [
        [name(curve), *(_cell(curve, reading) for reading in curve.readings)] for curve in frontier.curves
    ]
    return table(heads, rows, dense=True)


def note(frontier: Frontier) -> str:
    """How the figures were made."""
    text = (
        f"Interpolated between the measured levels of {naming.factor_text(frontier.factor)} (log queries per"
        " second over recall,"
        f" made monotone), in each of {numbers.plural(frontier.blocks, 'block')}; geometric mean,"
        f" {numbers.share_text(frontier.confidence)} interval. Nothing is extrapolated: a recall that one"
        " block does not reach is not reached."
    )
    if len(frontier.curves) > 1:
        text += f" ×: this curve / {name(frontier.curves[0])}, intervals of all curves together."
    return text


def points(curve: FrontierCurve) -> list[dict[str, Any]]:
    """The measured points of a curve, for the figure."""
    return [
        {
            "curve": name(curve),
            "effort": level_text(point.effort),
            "recall": point.recall.mean,
            "speed": point.queries_per_s.mean,
            "low": point.queries_per_s.low,
            "high": point.queries_per_s.high,
            "told_recall": f"{point.recall.mean:.3f}",
            "told_speed": f"{_speed(point.queries_per_s.mean)} ({_speed(point.queries_per_s.low)}–"
            f"{_speed(point.queries_per_s.high)})",
            "trials": point.recall.trials,
        }
        for point in curve.points
    ]


def _cell(curve: FrontierCurve, reading: FrontierReading) -> TableCell:
    if reading.queries_per_s is None:
        return TableCell("not reached", (_why(curve, reading),))
    below = []
    if reading.queries_per_s.low is not None and reading.queries_per_s.high is not None:
        below.append(f"{_speed(reading.queries_per_s.low)}–{_speed(reading.queries_per_s.high)}")
    if reading.effect is not None:
        below.append(_effect(reading.effect))
    return TableCell(_speed(reading.queries_per_s.ratio), tuple(below))


def _effect(effect: Ratio) -> str:
    text = f"×{numbers.cost_text(effect.ratio)}"
    if effect.low is None or effect.high is None:
        return text
    return f"{text} ({numbers.cost_text(effect.low)}–{numbers.cost_text(effect.high)})"


def _why(curve: FrontierCurve, reading: FrontierReading) -> str:
    recalls = [point.recall.mean for point in curve.points]
    if not recalls:
        return "not measured"
    if reading.reach is Reach.BELOW:
        return f"most {max(recalls):.3f}"
    if reading.reach is Reach.ABOVE:
        return f"least {min(recalls):.3f}"
    return f"in {numbers.plural(reading.blocks, 'block')} only"


def _speed(value: float) -> str:
    return metrics.find(SPEED).format(value)
