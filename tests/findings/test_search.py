"""A search in every form: its changes with their shares, what went, and how far its own figure was."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest
from rich.console import Console

from dbdyno.analyse import Analysis
from dbdyno.findings import analyse, as_json, search
from dbdyno.findings.searched import with_given_up
from dbdyno.frozen import Level
from dbdyno.report.figures import search as figures
from dbdyno.report.words import answer, naming
from dbdyno.report.words.search import sentences
from dbdyno.study.nouns import Promise
from tests.report.forms import as_markdown, as_page, print_report
from tests.searches import Surface, a_search, carried_out, listed, ranged, step

FACTORS = (ranged("config.pool", 16), listed("config.log", 2), *(listed(f"config.f{n}", 3) for n in range(4)))


def two_matter(levels: Mapping[str, Level]) -> float | None:
    if step(levels, "config.f0") == 2:
        return None
    return 0.7 * min(step(levels, "config.pool"), 8) / 8 + 0.2 * step(levels, "config.log")


def made(surface: Surface, blocks: int = 10**6) -> Analysis:
    study, run = a_search(*FACTORS)
    return analyse(study, run, carried_out(study, run, surface, blocks=blocks))


@pytest.fixture(scope="module")
def ended() -> Analysis:
    return made(two_matter)


def test_the_headline_tells_the_confirmed_ratio_and_the_changes(ended: Analysis) -> None:
    told = answer.headline(ended)
    assert "times the baseline’s throughput" in told
    assert "with 2 changes: " in told and "config.pool = " in told and "config.log = 1" in told


def test_changes_stand_with_their_shares_the_largest_first(ended: Analysis) -> None:
    assert ended.search is not None
    rows = search.change_rows(ended.search)
    assert [row[0] for row in rows[:2]] == ["config.pool", "config.log"]
    assert all(row[0].endswith("(taken back)") for row in rows[2:])
    assert {len(row) for row in rows} == {len(search.CHANGE_HEADS)}


def test_what_went_wrong_and_what_the_search_overstated_is_told(ended: Analysis) -> None:
    assert ended.search is not None
    told = " ".join(sentences(ended.search))
    assert "the server did not start" in told
    assert "Only the confirmed one is told." in told
    assert "Time: searching" in told


def test_each_form_holds_the_search(ended: Analysis) -> None:
    console = Console(file=io.StringIO(), width=100)
    print_report(ended, console, details=True)
    assert isinstance(console.file, io.StringIO)
    assert "The search" in console.file.getvalue()
    assert "## The search" in as_markdown(ended)
    page = as_page(ended)
    assert 'id="path"' in page and 'id="shares"' in page
    assert '"winner"' in as_json.render(ended)


def test_what_is_given_up_is_told_in_each_form(ended: Analysis) -> None:
    assert ended.search is not None and not any(
        "given" in one or "gives" in one for one in sentences(ended.search)
    )
    assert 'id="given-up"' not in as_page(ended)
    found = with_given_up(
        ended, lambda levels: (Promise.DURABILITY,) if levels.get("config.log") == 1 else ()
    )
    assert found.search is not None
    told = " ".join(sentences(found.search))
    assert "The winner gives up durability." in told
    assert answer.headline(found).endswith("(gives up durability).")
    assert " keeps all and has " in told and " gives up durability and has " in told
    assert "a search cuts no power" in told
    assert any(row[1].endswith("(gives up durability)") for row in search.finalist_rows(found))
    assert any(row[3].endswith("(gives up durability)") for row in search.tried_rows(found.search))
    page = as_page(found)
    assert 'id="given-up"' in page and search.GIVEN_UP_NOTE in page
    assert "The winner gives up durability." in as_markdown(found)


def test_figures_call_candidates_by_what_they_change(ended: Analysis) -> None:
    names = naming.called(ended)
    assert names["baseline"] == "baseline"
    assert all(" = " in name for variant, name in names.items() if variant.startswith("candidate-"))
    assert ended.search is not None and ended.search.winner is not None
    found = with_given_up(
        ended, lambda levels: (Promise.DURABILITY,) if levels.get("config.log") == 1 else ()
    )
    marked = naming.called(found)
    assert marked[ended.search.winner].endswith(" (gives up durability)")


def test_where_nothing_helped_the_report_says_so() -> None:
    found = made(lambda levels: 0.0)
    assert answer.headline(found).startswith("Nothing helped: of ")
    assert found.search is not None and figures.shares(found.search, 0.02) is None
    as_page(found)


def test_a_search_that_is_not_over_proves_nothing() -> None:
    found = made(two_matter, blocks=3)
    told = answer.headline(found)
    assert told.startswith("The search is not over.") and "proves nothing" in told
    as_markdown(found)
    assert answer.headline(made(two_matter, blocks=1)).endswith("It has tried no candidate yet.")


def test_a_search_without_a_better_candidate_says_that_nothing_helped() -> None:
    found = made(lambda levels: -0.5 * any(levels.values()), blocks=4)
    assert answer.headline(found).endswith("none is better than the baseline in the search’s own blocks.")
    assert [one.name for one in found.variants] == ["baseline"], "no row looks like a verdict"
