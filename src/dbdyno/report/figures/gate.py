"""A gate's ratio above what it is judged by, as bars on one log axis. A page draws them without a script, so
that it stays small enough to hang on a merge request."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dbdyno.analyse.gate import Gate
from dbdyno.report.figures.vega import ratio_domain, ratio_ticks
from dbdyno.report.words import numbers, verdicts


@dataclass(frozen=True)
class Bar:
    """A stretch of the axis, its ends in percent from the left. `dot` is the ratio itself, `marks` are those
    of single blocks; `kind` is a class of the style sheet."""

    name: str
    told: str
    kind: str
    low: float
    high: float
    dot: float | None = None
    marks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Figure:
    """The bars, and the axis' ticks as places and texts. `one` is the place of the ratio 1."""

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float


def figure(found: Gate) -> Figure | None:
    """None where the run has no ratio to its reference."""
    effect, floor, margin = found.result.effect, found.floor, found.method.margin
    if effect is None:
        return None
    blocks = [block.ratio for block in found.result.block_ratios]
    ends = [effect.ratio, effect.low or effect.ratio, effect.high or effect.ratio]
    around = [1.0 / floor.ratio, floor.ratio] if floor else []
    left, right = ratio_domain([*ends, *blocks, *around], margin)

    def place(ratio: float) -> float:
        share = math.log(min(max(ratio, left), right) / left) / math.log(right / left)
        return round(100.0 * share, 2)

    def around_one(name: str, kind: str, ratio: float) -> Bar:
        told = f"{numbers.ratio_text(1.0 / ratio)} {numbers.DASH} {numbers.ratio_text(ratio)}"
        return Bar(name, told, kind, place(1.0 / ratio), place(ratio))

    ratio = Bar(
        name="run / reference",
        told=numbers.effect_text(effect),
        kind=verdicts.slug(found.result.verdict) if found.result.verdict else "none",
        low=place(ends[1]),
        high=place(ends[2]),
        dot=place(effect.ratio),
        marks=tuple(map(place, blocks)),
    )
    floors = (around_one("two equal runs", "floor", floor.ratio),) if floor else ()
    return Figure(
        bars=(ratio, around_one("the margin", "margin", 1.0 + margin), *floors),
        ticks=tuple((place(tick), f"{tick:.4g}") for tick in ratio_ticks(left, right)),
        one=place(1.0),
    )
