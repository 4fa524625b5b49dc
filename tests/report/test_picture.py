"""The README shows what the report prints."""

from __future__ import annotations

from tests.report.picture import PICTURE, drawn


def test_the_picture_is_what_the_report_of_the_stored_run_prints() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "the report changed: `make picture` draws it anew"


def test_the_picture_is_small_and_asks_the_network_for_nothing() -> None:
    svg = PICTURE.read_text(encoding="utf-8")
    assert len(svg.encode()) < 60_000
    assert "url(http" not in svg and "href=" not in svg
