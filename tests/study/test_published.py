"""What a study may say of figures that others published."""

from __future__ import annotations

import pytest

from dbdyno.study.published import PublishedFigure
from tests.study.reader_cases import SHORT
from tests.study.reading import mistakes, read

FIGURE = """\
[[published]]
variant = "config.a=2"
ratio = 1.5
low = 1.4
high = 1.6
source = "Somebody"
year = 2020
hardware = "a laptop"
"""


def test_a_figure_is_read_whole() -> None:
    study = read(SHORT + FIGURE)
    assert study.published == (
        PublishedFigure(
            variant="config.a=2",
            ratio=1.5,
            low=1.4,
            high=1.6,
            source="Somebody",
            year=2020,
            hardware="a laptop",
        ),
    )
    assert study.published[0].names == ("config.a=2", "baseline")


def test_a_source_without_a_date_says_so() -> None:
    [figure] = read(SHORT + FIGURE.replace("year = 2020\n", "")).published
    assert figure.source_text == "Somebody, not dated"


def test_what_others_published_does_not_change_what_a_study_asks() -> None:
    assert read(SHORT + FIGURE).meaning == read(SHORT).meaning
    assert read(SHORT).published == ()


@pytest.mark.parametrize(
    ("written", "instead", "told"),
    [
        ('"config.a=2"', '"config.a=3"', "`config.a=3` is no variant of this study"),
        ('variant = "config.a=2"\n', "", "`variant` is missing"),
        ('"config.a=2"', '"baseline"', "`baseline` is held against itself"),
        ("ratio = 1.5", "ratio = 1.7", "the ratio lies outside of its own interval"),
        ("ratio = 1.5", "ratio = 0", "`ratio`: cannot be 0"),
        ("high = 1.6\n", "", "an interval has two ends"),
        ("source", "sorce", "`source` is missing"),
        ("[[published]]", "[published]", "`published` must be a list of tables"),
    ],
)
def test_each_mistake_in_a_figure_is_named_with_its_line(written: str, instead: str, told: str) -> None:
    text = SHORT + FIGURE.replace(written, instead, 1)
    found = mistakes(text)
    assert any(one.message.startswith(told) for one in found), found
    assert all(one.line > SHORT.count("\n") for one in found)
