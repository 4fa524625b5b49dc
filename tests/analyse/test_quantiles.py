"""Quantiles are the tabled ones, and several intervals hold together as often as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analyse.quantiles import confidence_each, t_quantile


def test_one_comparison_is_not_corrected_and_more_are_corrected_more() -> None:
    assert confidence_each(0.95, 1) == 0.95
    assert confidence_each(0.95, 0) == 0.95
    assert confidence_each(0.95, 10) ** 10 == pytest.approx(0.95)


def test_the_t_quantile_is_the_tabled_one() -> None:
    assert t_quantile(0.95, 6) == pytest.approx(2.571, abs=5e-4)


@given(st.floats(0.5, 0.9999), st.integers(2, 50_000))
def test_students_quantile_has_the_digits_of_the_library_of_distributions(
    confidence: float, pairs: int
) -> None:
    assert t_quantile(confidence, pairs) == float(stats.t.ppf(0.5 + confidence / 2.0, pairs - 1))
