"""What a build's command says of how far it is."""

from __future__ import annotations

import pytest

from dbdyno.obtain.source.commands import PROGRESS, far_text


@pytest.mark.parametrize(
    ("line", "took_s", "told"),
    [
        ("[120/480] Building C object", 60.0, ", 120 of 480, about 3 min left"),
        ("[ 50%] Building CXX object", 600.0, ", 50 %, about 10 min left"),
        ("[480/480] Linking", 600.0, ", 480 of 480"),
        ("[  0%] Built target gen", 11.0, ", 0 %"),
    ],
)
def test_what_is_left_follows_from_what_is_done(line: str, took_s: float, told: str) -> None:
    far = PROGRESS.search(line)
    assert far is not None and far_text(far, took_s) == told
