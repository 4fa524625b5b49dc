"""What the tests of intervals share with others."""

from __future__ import annotations

import math

from dbdyno.analyse.model import Method, Ratio
from dbdyno.analyse.quantiles import BLOCKS_LEAST


def a_method(margin: float = 0.02, higher_is_better: bool = True) -> Method:
    return Method(
        response="throughput", higher_is_better=higher_is_better, margin=margin, confidence=0.95,
        comparisons=1, confidence_each=0.95, assurance=0.8, blocks_least=BLOCKS_LEAST,
    )  # fmt: skip


def a_ratio(low: float | None, high: float | None, pairs: int = 6, spread: float | None = 0.02) -> Ratio:
    middle = math.sqrt(low * high) if low and high else 1.1
    return Ratio(
        metric="throughput", pairs=pairs, ratio=middle, low=low, high=high, log_sd=spread, confidence=0.95
    )


def within_binomial_error(count: int, of: int, probability: float, sigmas: float = 4.0) -> bool:
    return abs(count / of - probability) <= sigmas * math.sqrt(probability * (1 - probability) / of)
