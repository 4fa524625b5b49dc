"""PostgreSQL's defaults as a study writes them."""

from __future__ import annotations

import pytest

from dbdyno.engines.postgresql.facts import level


@pytest.mark.parametrize(
    ("default", "written"),
    [
        ("16 8kB", "128kB"),
        ("128 MB", "128MB"),
        ("16384 8kB", "131072kB"),
        ("0.5 ms", "0.5ms"),
        ("0 s", "0"),
        ("-1 kB", "-1"),
        ("on", "on"),
        ("pgoutput, test_decoding", "pgoutput, test_decoding"),
        ("", ""),
    ],
)
def test_a_default_has_its_unit_beside_the_number(default: str, written: str) -> None:
    assert level(default) == written
