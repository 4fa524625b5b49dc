"""Long names are cut without a loss."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.report.words import naming


@given(st.text("abc._=/, ", max_size=80), st.integers(5, 40))
def test_wrapping_loses_nothing(name: str, width: int) -> None:
    assert naming.wrapped(name, width, indent="").replace("\n", "").replace(" ", "") == name.replace(" ", "")
