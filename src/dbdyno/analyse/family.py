"""The family of claims that the head of a report makes: its intervals hold together.

The head of a factorial study tells verdicts, main effects, and the gap with its shares. A reader takes all of
that for one answer, so to be wrong in any of it is one error. Tables below the head are families of their
own, and say so.

A plan needs the size of the family as well, so nothing here imports numpy.
"""

from __future__ import annotations

from dbdyno.study import Design, Study

FACTORS_MOST = 6
"""Beyond, 2^k variants are too many to measure in blocks: `fractional` is for those."""


def claims(study: Study, candidates: int) -> int:
    """How many intervals hold together where so many candidates are compared."""
    return study.goal.comparisons(candidates) + beside(study)


def beside(study: Study) -> int:
    """How many of them decide no verdict: main effects, and the shares of the gap. The total of a gap is the
    effect of the variant with every last level, so it counts among the verdicts."""
    factors = len(study.factors)
    if study.design is Design.FRACTIONAL:
        return factors
    if study.design is not Design.FACTORIAL or factors < 2:
        return 0
    mains = sum(len(factor.levels) - 1 for factor in study.factors)
    # Of two factors with two levels each, shares are main effects: both are the mean of the same two gains.
    same = factors == mains == 2
    return mains + (factors if explains_gap(study) and not same else 0)


def varies_together(study: Study) -> bool:
    """Whether it is a factorial study of two factors or more."""
    return study.design is Design.FACTORIAL and len(study.factors) >= 2


def explains_gap(study: Study) -> bool:
    """Whether the study measures all variants between its first and its last, or a fraction made for it."""
    return study.design is Design.FRACTIONAL or (
        study.design is Design.FACTORIAL and 2 <= len(study.factors) <= FACTORS_MOST
    )
