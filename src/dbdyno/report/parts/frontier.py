"""The frontier of recall against speed: in words and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbdyno.analyse.model import Frontier, FrontierCurve, FrontierReading, Ratio, Reach
from dbdyno.frozen import level_text
from dbdyno.records import metrics
from dbdyno.report.document import Cell, Figure, Notes, Row, Section, Table, table
from dbdyno.report.words import naming, numbers

SPEED = "queries_per_s"
HEADLINE_RECALL = 0.9


def sections(frontier: Frontier) -> Iterator[Section]:
    """The sentence, the figure and the table."""
    body = (
        Figure("frontier", (frontier,)),
        readings(frontier),
        Notes((note(frontier),)),
    )
    yield Section("Recall against speed", body, aside=title(frontier))


def name(curve: FrontierCurve) -> str:
    """A curve by what sets it apart: the levels of the other factors."""
    parts = [f"{naming.factor_text(factor)}={level_text(level)}" for factor, level in curve.levels.items()]
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


def _cell(curve: FrontierCurve, reading: FrontierReading) -> Cell:
    if reading.queries_per_s is None:
        return Cell("not reached", (_why(curve, reading),))
    below = []
    if reading.queries_per_s.low is not None and reading.queries_per_s.high is not None:
        below.append(f"{_speed(reading.queries_per_s.low)}–{_speed(reading.queries_per_s.high)}")
    if reading.effect is not None:
        below.append(_effect(reading.effect))
    return Cell(_speed(reading.queries_per_s.ratio), tuple(below))


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
