"""What docs/guides/vector-search.md says is so."""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.study import parse_study

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "vector-search.md").read_text()


def test_its_study_is_one() -> None:
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    study = parse_study(example.encode(), catalogue(ask_engines=False))
    assert study.workload.name == VECTOR_SEARCH


def test_every_option_is_mentioned_with_its_default() -> None:
    offer = catalogue(ask_engines=False).workload(VECTOR_SEARCH)
    assert offer is not None
    for option in offer.options:
        assert f"`{option.name}`" in PAGE
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", PAGE, re.MULTILINE))
    for name, default in rows.items():
        known = offer.option(name)
        assert known is not None
        assert default.strip('"`') == str(known.default).removesuffix(".0"), name


def test_the_options_of_the_run_are_those_that_it_names() -> None:
    offer = catalogue(ask_engines=False).workload(VECTOR_SEARCH)
    assert offer is not None
    sentence = re.search(r"([^.]*)\s+do not shape the data", PAGE)
    assert sentence is not None
    named = set(re.findall(r"`(\w+)`", sentence.group(1)))
    assert named == {option.name for option in offer.options if not option.shapes_data}
