"""Quantiles are the tabled ones, and several intervals hold together as often as one."""

from __future__ import annotations

import pytest

from dbdyno.analyse.quantiles import confidence_each, t_quantile


def test_one_comparison_is_not_corrected_and_more_are_corrected_more() -> None:
    assert confidence_each(0.95, 1) == 0.95
    assert confidence_each(0.95, 0) == 0.95
    assert confidence_each(0.95, 10) ** 10 == pytest.approx(0.95)


def test_the_t_quantile_is_the_tabled_one() -> None:
    assert t_quantile(0.95, 6) == pytest.approx(2.571, abs=5e-4)
