"""What all candidates together tell of the levels that they had.

A candidate that was in one block is known to a few per cent, so the best of many is partly lucky. But most of
its levels were in other candidates as well. A Gaussian process (C. E. Rasmussen, C. K. I. Williams: Gaussian
Processes for Machine Learning, 2006) takes a worth for the sum of what levels do alone and in pairs. So it
tells luck from worth, it expects something of levels that were never together, and it says how sure it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr

from dbdyno.analyse.elimination import CHANGE_WORTH, Candidate, spread_of
from dbdyno.frozen import Level, level_text
from dbdyno.study import Factor, Study

Vector = npt.NDArray[np.float64]

REACH = 0.5
"""How far along a range two levels are that tell little of each other: a share of its steps."""
PAIRS = 0.3
"""Pairs of factors make so much of the variance of worths, and each factor alone the rest."""
SCALES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Standard deviations of worths over a space, of which the likeliest is taken."""
NOISE_LEAST = 0.01
"""The standard deviation of a log ratio from block to block is taken for no less, because few blocks can
agree by chance."""
FAILED_WORTH, FAILED_NOISE = -0.7, 0.5
"""What a candidate without a speed counts as, and how surely: levels may fail only together, so a failure
says little of each."""
ROWS_MOST = 800
"""The latest ratios are pooled: they lie around the best, and more would take long."""
SHARED = 10.0
"""Variance of what all points share, as a multiple of what their levels make. It is so large that a level
that was never tried is expected to do nothing."""
DEVIATION_LEAST = 1e-4
DIGITS = 6
"""Digits after which another machine's arithmetic may differ. They decide nothing."""


class Model:
    """The worths of a search's candidates, pooled. Worths are log ratios to the baseline, more is better."""

    def __init__(self, study: Study, candidates: Sequence[Candidate]) -> None:
        self._study = study
        self._places = [_places(factor) for factor in study.factors]
        rows = _rows(candidates)[-ROWS_MOST:]
        self._points = self._points_of([study.baseline, *(levels for levels, _, _ in rows)])
        self._worths = np.array([0.0, *(worth for _, worth, _ in rows)])
        self._noise = _noise([block for _, _, block in rows], max(spread_of(candidates), NOISE_LEAST))
        alike = self._alike(self._points)
        self._scale = max(SCALES, key=lambda scale: self._likelihood(scale, alike))
        self._fit(alike)

    def expected(self, levels: Sequence[Mapping[str, Level]]) -> Vector:
        """The worth that each of these levels is expected to have, less what its changes have to be worth."""
        return self._told(levels)[0]

    def hopeful(self, levels: Sequence[Mapping[str, Level]], best: float) -> Vector:
        """By how much each is expected to be better than `best`, where worse counts as nothing ("expected
        improvement")."""
        expected, deviation = self._told(levels)
        ahead = expected - best
        ratio = ahead / deviation
        density = np.exp(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
        return np.round(ahead * ndtr(ratio) + deviation * density, DIGITS)

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those with a speed that counts, the one that is expected to be best first."""
        sound = [one for one in candidates if one.log_ratios and not one.cause]
        if not sound:
            return []
        expected = self.expected([one.levels for one in sound])
        return [sound[place] for place in np.argsort(-expected, kind="stable")]

    def leading(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The one that is expected to be best; None while that one seems no better than the baseline."""
        return next((one for one in self.ranked(candidates)[:1] if one.worth > 0.0), None)

    def believe(self, levels: Sequence[Mapping[str, Level]]) -> None:
        """Takes levels that are about to be measured for as good as expected, so that what is hoped for next
        is something else."""
        if not levels:
            return
        points = self._points_of(levels)
        self._worths = np.concatenate([self._worths, self._mean(points)])
        self._points = np.vstack([self._points, points])
        known = len(self._noise)
        noise = np.diag(np.full(len(self._points), NOISE_LEAST**2))
        noise[:known, :known] = self._noise
        self._noise = noise
        self._fit(self._alike(self._points))

    def _told(self, levels: Sequence[Mapping[str, Level]]) -> tuple[Vector, Vector]:
        """What each is expected to be worth less its changes, and the standard deviation of that."""
        points = self._points_of(levels)
        near = self._scale**2 * self._alike(points)
        mean = near @ self._weights
        explained = (near * cho_solve(self._factored, near.T).T).sum(axis=1)
        deviation = np.sqrt(np.maximum((1.0 + SHARED) * self._scale**2 - explained, DEVIATION_LEAST**2))
        changes = (points != self._points[0]).sum(axis=1)
        return np.round(mean - CHANGE_WORTH * changes, DIGITS), deviation

    def _mean(self, points: Vector) -> Vector:
        mean: Vector = self._scale**2 * self._alike(points) @ self._weights
        return mean

    def _fit(self, alike: Vector) -> None:
        self._factored = cho_factor(self._scale**2 * alike + self._noise, lower=True)
        self._weights = cho_solve(self._factored, self._worths)

    def _likelihood(self, scale: float, alike: Vector) -> float:
        """The log likelihood of all worths at this scale, up to a constant."""
        factored = cho_factor(scale**2 * alike + self._noise, lower=True)
        fit = self._worths @ cho_solve(factored, self._worths)
        return float(-0.5 * fit - np.log(np.diag(factored[0])).sum())

    def _points_of(self, levels: Sequence[Mapping[str, Level]]) -> Vector:
        """A row for each, with the place of every factor's level."""
        names = [factor.name for factor in self._study.factors]
        return np.array(
            [
                [places[level_text(own[name])] for name, places in zip(names, self._places, strict=True)]
                for own in levels
            ]
        )

    def _alike(self, points: Vector) -> Vector:
        """How alike the worths of some points and of all rows are before anything is measured. All share
        something. Beyond that, levels of a list are alike where they are the same, and those of a range the
        more, the nearer they are."""
        factors = self._study.factors
        alone = np.zeros((len(points), len(self._points)))
        squares = alone.copy()
        for place, factor in enumerate(factors):
            apart = np.abs(points[:, place, None] - self._points[None, :, place])
            if factor.rising:
                apart *= math.sqrt(3.0) / REACH
                alike = (1.0 + apart) * np.exp(-apart)
            else:
                alike = (apart == 0.0).astype(np.float64)
            alone += alike
            squares += alike**2
        count = len(factors)
        if count == 1:
            return SHARED + alone
        pairs = (alone**2 - squares) / (count * (count - 1))
        return SHARED + (1.0 - PAIRS) * alone / count + PAIRS * pairs


def _places(factor: Factor) -> dict[str, float]:
    """Where each level lies: along a range from 0 to 1, or by its number in a list."""
    levels = factor.rising or factor.levels
    length = max(1, len(levels) - 1) if factor.rising else 1
    return {level_text(level): place / length for place, level in enumerate(levels)}


def _rows(candidates: Sequence[Candidate]) -> list[tuple[dict[str, Level], float, int]]:
    """The levels, the log ratio and the block of each ratio. A candidate that failed has a number below 0 for
    its block."""
    rows: list[tuple[dict[str, Level], float, int]] = []
    for number, one in enumerate(candidates):
        if one.cause:
            rows.append((one.levels, FAILED_WORTH, -1 - number))
        else:
            rows += [(one.levels, *told) for told in zip(one.log_ratios, one.blocks, strict=True)]
    return rows


def _noise(blocks: Sequence[int], spread: float) -> Vector:
    """The covariance of the noise of the baseline, which is its own measure, and of the rows. Two ratios of
    one block share the noise of its baseline, which is half of theirs."""
    numbers = np.array(blocks)
    same = (numbers[:, None] == numbers[None, :]).astype(np.float64)
    noise = np.zeros((1 + len(blocks), 1 + len(blocks)))
    noise[0, 0] = 1e-6
    noise[1:, 1:] = 0.5 * spread**2 * (same + np.eye(len(blocks)))
    noise[1:, 1:] += np.diag(np.where(numbers < 0, FAILED_NOISE**2, 0.0))
    return noise
