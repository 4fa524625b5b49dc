"""How many trials a study has, before any of them is made, and the arithmetic for who asked for too many."""

from __future__ import annotations

from dbdyno.frozen import Frozen
from dbdyno.study import fraction
from dbdyno.study.nouns import Design, Factor, Study

COUNTED_TO = 10**9


class Size(Frozen):
    """How many trials a study has, counted up to `COUNTED_TO`, and the arithmetic that gives them."""

    trials: int
    arithmetic: str


def size_of_study(study: Study) -> Size:
    """The size of a study as it is."""
    listed = len(study.variants)
    return size_of(study.design, study.factors, listed, study.blocks, study.aa, study.baselines)


def size_of(
    design: Design, factors: tuple[Factor, ...], listed: int, blocks: int, aa: bool, baselines: int
) -> Size:
    """The size of a study before any of its trials is made: a full factorial can exceed every memory."""
    if design is Design.LIST:
        variants, words = listed, f"{listed} variants"
    elif design is Design.FACTORIAL:
        variants = 1
        for factor in factors:
            variants = min(variants * len(factor.levels), COUNTED_TO)
        counts = [str(len(factor.levels)) for factor in factors]
        product = " x ".join(counts if len(counts) <= 8 else [*counts[:7], f"... ({len(counts)} factors)"])
        words = f"{product or 1} levels = {_counted(variants)} variants"
    elif design is Design.SEARCH:
        variants, words = 1, "1 baseline, and as many candidates as the time allows"
    elif design is Design.FRACTIONAL:
        variants = len(fraction.points(len(factors))) if len(factors) in fraction.GENERATORS else 0
        words = f"a fraction of 2^{len(factors)} combinations = {variants} variants"
    else:
        others = sum(len(factor.levels) - 1 for factor in factors)
        variants, words = 1 + others, f"1 baseline + {others:,} other levels = {1 + others:,} variants"
    if copies := aa + baselines - 1:
        more = "1 second baseline" if copies == 1 else f"{copies} further baselines"
        variants, words = variants + copies, f"{words} + {more}"
    trials = min(variants * blocks, COUNTED_TO)
    return Size(trials=trials, arithmetic=f"{words}, x {blocks:,} blocks = {_counted(trials)} trials")


def _counted(count: int) -> str:
    return f"{count:,}" if count < COUNTED_TO else f"over {COUNTED_TO:,}"
