"""Every sentence of a report that states an inference has a simulation that it was held to.

A sentence is a text of `report/words` or `findings` with a word of inference in it. They are counted by
the function or constant that they stand in, so that a new one is seen. It needs a line here: the tests that
simulate what it says, or a word that it says nothing of a chance.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
INFERENCE = re.compile(
    r"\binterval|is wrong|told apart|called different|correlate|\bluck\b|noise floor|smallest differ"
    r"|settle it|would settle|\bp = |promised|true share|stands? out|moved|shown to|is shown|not shown"
    r"|explain|spreads? |by chance|cannot say|suppose that|plausible|helped|as many trials|real differ"
    r"|carry that|student|prediction|\blimits?\b|no difference",
    re.IGNORECASE,
)


class Claim(NamedTuple):
    """How many sentences a place has, and the tests that hold them, in files of both rooms of tests."""

    sentences: int
    by: tuple[str, ...]


def claim(sentences: int, *by: str) -> Claim:
    return Claim(sentences, by)


VERDICT = "test_effects.py::test_chance_alone_gives_a_verdict_in_one_of_twenty_runs_at_most"
LOOKS = "test_sequential.py::test_looks_up_to_a_known_end_are_wrong_as_seldom_as_promised"
ANY_LOOK = "test_sequential.py::test_false_alarms_under_peeking_stay_below_what_was_promised"
TOGETHER = "test_intervals.py::test_all_intervals_of_a_study_hold_together_as_often_as_promised"
ALONE = "test_intervals.py::test_a_single_interval_covers_exactly_as_often_as_promised"
RANKS = "test_intervals.py::test_a_signed_rank_interval_covers_as_often_as_promised_whatever_the_tails"
THREE_WAY = "test_intervals.py::test_no_effect_and_differences_together_are_wrong_in_one_run_of_twenty"
LAYOUT = "test_layout.py::test_builds_without_an_effect_seldom_lie_beyond_the_placebos_limits"
HOSTS = "test_hosts.py::test_equal_variants_are_seldom_told_apart_where_hosts_favour_them"
IMAGES = "test_estimate.py::test_comparisons_hold_together_where_images_favour_them"
BEST_OF_ALL = "test_museum.py::test_one_that_is_not_shown_to_help_may_still_help_more"
MORE_BLOCKS = "test_assurance.py::test_so_many_more_blocks_settle_what_was_inconclusive_as_often_as_they_say"
NO_CHANGE = "test_bisect.py::test_without_a_change_none_is_named"
BY_TIME = "test_bisect.py::test_by_time_alone_few_are_wrong"
NO_GAP = "test_compare.py::test_hosts_that_differ_are_seldom_said_to_have_no_gap"
DAYS = "test_compare.py::test_one_host_on_different_days_shows_a_gap_in_few_of_many_comparisons"
HEAD = "test_quantiles.py::test_a_head_is_wrong_in_five_of_a_hundred_runs_at_most"
FRACTION = "test_gap.py::test_what_a_fraction_says_of_equal_variants_holds_together"
GAP = "test_gap.py::test_what_the_headline_says_of_a_gap_holds_together"
FACTORS = "test_estimate.py::test_contrasts_of_a_factorial_study_hold_where_images_favour_variants"
GATE = "test_gate.py::test_equal_runs_of_a_setup_that_is_noisier_than_others_are_seldom_called_different"
GATE_OF_ONE = "test_gate.py::test_runs_of_one_setup_are_called_different_no_more_often_than_promised"
SMALLEST = "test_floor.py::test_the_smallest_difference_of_ten_candidates_is_found_in_every_second_run"
PAGE = "test_trend.py::test_a_page_of_equal_runs_seldom_says_that_something_moved"
LAST_RUN = "test_trend.py::test_equal_runs_stand_out_no_more_often_than_promised"
ROW = "test_change_points.py::test_a_row_without_a_change_has_one_no_more_often_than_promised"
PLACE = "test_change_points.py::test_the_place_of_a_change_is_mostly_within_those_that_are_told"
RUNS = "test_trend.py::test_luck_of_a_run_is_told_from_the_spread_of_its_blocks"
STANDS = "test_standing.py::test_a_leak_of_more_than_is_allowed_is_rarely_said_to_stand"
LATE = "test_steady.py::test_a_leak_in_the_last_fifth_alone_has_its_own_slope"
LONGER = "test_standing.py::test_a_load_of_the_length_that_is_told_settles_what_is_open"
STAYS = "test_steady.py::test_a_quantity_that_stays_is_rarely_called_rising"
CONFIRMED = "test_search.py::test_the_lower_end_of_the_best_of_three_confirmed_is_seldom_too_high"
TAKEN_BACK = "test_elimination.py::test_what_is_taken_away_together_is_seldom_worth_more_than_the_margin"
CAPACITY = "test_capacity.py::test_intervals_over_blocks_hold_the_truth_as_often_as_they_say"
CLAIMS: dict[str, Claim] = {
    "findings/capacity.note": claim(1, CAPACITY),
    "words/answer._why_open": claim(2, VERDICT),
    "words/answer._of_measured": claim(3, LAYOUT, BEST_OF_ALL),
    "words/answer._without_loss": claim(2, VERDICT),
    "words/answer.findings": claim(1, LAYOUT),
    "words/answer._blocks_needed": claim(1, MORE_BLOCKS),
    "words/naming.INTERVALS": claim(1, ALONE, RANKS, "test_compare.py::test_welch_covers_what_it_promises"),
    "words/hosts.spread_text": claim(2, HOSTS),
    "words/hosts.method_text": claim(2, HOSTS),
    "words/method.INTERVALS": claim(3, ALONE, RANKS, LOOKS, ANY_LOOK),
    "words/method.method_text": claim(5, VERDICT),
    "words/method._brought_text": claim(1, ALONE),
    "words/method._margin_text": claim(1, THREE_WAY),
    "words/numbers.narrower_text": claim(1, THREE_WAY),
    "words/method._images_text": claim(
        2, "test_estimate.py::test_equal_variants_are_seldom_told_apart_where_images_favour_them"
    ),
    "words/method._over_images": claim(1, IMAGES),
    "words/method._looks": claim(
        1, LOOKS, ANY_LOOK, "test_unfinished.py::test_a_run_that_stops_when_it_pleases_is_seldom_wrong"
    ),
    "words/method._together": claim(1, TOGETHER, HEAD),
    "words/method.intervals_text": claim(2, TOGETHER, LOOKS),
    "words/method.layout_text": claim(2, LAYOUT),
    "words/method.aa_text": claim(
        1, "test_second.py::test_the_share_of_pairs_called_different_is_the_one_promised"
    ),
    "words/noise.adjusted_text": claim(
        1, "test_effects.py::test_equal_variants_are_called_different_in_one_run_of_twenty_at_most"
    ),
    "words/noise.second_text": claim(
        2,
        "test_second.py::test_equal_costs_are_told_apart_in_one_run_of_twenty_at_most",
        "test_second.py::test_a_cost_that_repeats_no_better_is_told_apart_as_seldom",
    ),
    "words/noise.neighbours_warning": claim(
        1, "test_floor.py::test_blocks_that_are_alike_are_told_from_independent_ones"
    ),
    "words/noise._neighbours_text": claim(
        3, "test_floor.py::test_blocks_that_are_alike_are_told_from_independent_ones"
    ),
    "words/noise._components_text": claim(
        2,
        "test_components.py::test_slices_that_resemble_their_neighbours_are_not_taken_for_starts",
        "test_components.py::test_the_spread_of_a_trial_s_mean_is_that_of_slices_that_resemble_their_neighbours",
    ),
    "words/noise._smallest": claim(1, SMALLEST),
    "words/noise.SMALLEST": claim(
        1,
        SMALLEST,
        "test_floor.py::test_equal_comparisons_are_seldom_called_noisier",
        "test_floor.py::test_a_stall_that_may_be_in_no_block_is_in_none_of_one_run_in_twenty",
    ),
    "words/noise._blocking_text": claim(
        3, "test_floor.py::test_the_interval_of_the_efficiency_holds_as_often_as_promised"
    ),
    "words/remarks._verdict_alone": claim(1, LAYOUT),
    "words/remarks.remark": claim(1, VERDICT),
    "words/remarks._carried_text": claim(1, "test_effects.py::test_a_verdict_that_few_blocks_carry_says_so"),
    "words/remarks._why_inconclusive": claim(
        6,
        LAYOUT,
        MORE_BLOCKS,
        "test_mean.py::test_a_mean_that_is_slower_is_seldom_called_faster",
        "test_guards.py::test_percentiles_of_half_as_many_transactions_are_seldom_told_lower",
    ),
    "words/remarks._out_of_reach": claim(3, MORE_BLOCKS, HOSTS, IMAGES),
    "words/search.headline": claim(1, CONFIRMED),
    "words/search._not_confirmed": claim(1, CONFIRMED),
    "words/search._cut_short": claim(1, TAKEN_BACK),
    "words/search.METHOD": claim(1, CONFIRMED, TAKEN_BACK),
    "words/search.METHOD_OF_OTHERS": claim(
        1, CONFIRMED, "test_quantiles.py::test_equal_servers_lie_beyond_the_noise_floor_as_seldom_as_promised"
    ),
    "words/verdicts.LOOKS": claim(
        4, VERDICT, "test_effects.py::test_chance_alone_ends_one_of_twenty_sequential_runs_at_most"
    ),
    "findings/bisect._why_none": claim(1, NO_CHANGE),
    "findings/bisect._confirmed": claim(1, BY_TIME),
    "findings/bisect._notes": claim(2, NO_CHANGE, BY_TIME),
    "findings/compare.sentence": claim(2, NO_GAP, DAYS),
    "findings/compare.next_step": claim(1, DAYS),
    "findings/compare.note": claim(2, NO_GAP, "test_compare.py::test_welch_covers_what_it_promises"),
    "findings/verdicts.costs_sections": claim(1, ALONE),
    "findings/factors.NOTE": claim(1, FACTORS),
    "findings/frontier.note": claim(
        2, "test_frontier.py::test_the_curves_of_a_frontier_hold_together_at_all_recalls"
    ),
    "findings/published.NOTE": claim(1, TOGETHER),
    "findings/gap.title": claim(2, GAP),
    "findings/gap._note": claim(2, GAP, FACTORS),
    "findings/gap._note_of_fraction": claim(1, FRACTION),
    "findings/gate.CAPTION": claim(1, GATE),
    "findings/gate.way_text": claim(1, GATE),
    "findings/gate.next_steps": claim(2, IMAGES, GATE_OF_ONE),
    "findings/gate._why_open": claim(2, GATE, GATE_OF_ONE),
    "findings/gate.floor_text": claim(2, GATE, GATE_OF_ONE),
    "findings/gate.alarms_text": claim(1, GATE_OF_ONE),
    "findings/factors._note": claim(1, TOGETHER),
    "findings/hosts.sections": claim(
        1, "test_hosts.py::test_each_host_has_its_own_interval_and_all_hold_together"
    ),
    "findings/hosts._of_machines": claim(1, SMALLEST),
    "findings/matrix.WITHIN": claim(1, LAYOUT),
    "findings/matrix._note": claim(2, LAYOUT),
    "findings/request.NOTE": claim(1, ALONE),
    "findings/soak.GREW_NOTE": claim(1, STAYS),
    "findings/soak._stands": claim(1, STANDS, LATE),
    "findings/soak._longer": claim(1, LONGER),
    "findings/soak.notes": claim(2, STAYS, STANDS),
    "findings/split.title": claim(1, ALONE),
    "findings/phases._notes": claim(1, TOGETHER),
    "findings/split.note": claim(1, ALONE),
    "findings/statements.NOTE": claim(1, ALONE),
    "findings/statements._notes": claim(1, TOGETHER),
    "findings/trend.CAPTION": claim(1, PLACE),
    "findings/trend.headline": claim(4, PAGE, ROW),
    "findings/trend.sentences": claim(
        3, LAST_RUN, "test_trend.py::test_runs_that_resemble_their_neighbours_are_told"
    ),
    "findings/trend._change_text": claim(1, ROW, PLACE),
    "findings/trend._shift_text": claim(3, PAGE),
    "findings/trend.notes": claim(
        1, PAGE, "test_trend.py::test_who_reads_a_page_after_each_run_meets_alarms_as_often_as_is_told"
    ),
    "findings/trend._beyond_blocks": claim(2, RUNS),
    "findings/verdicts._effects_text": claim(2, VERDICT),
    "findings/verdicts.COSTS_NOTE": claim(1, ALONE),
    "findings/verdicts.PAGE_NOTE": claim(1, ALONE),
    "findings/versions._note": claim(1, "test_versions.py::test_the_intervals_of_all_cells_hold_together"),
    "words/answer._level": claim(1, BEST_OF_ALL),
    "findings/soak.says": claim(1, STANDS),
    "findings/trend._ratio_cells": claim(1, LAST_RUN),
}
FACTS: dict[str, int] = {
    "words/remarks.WARNINGS": 3,
    "findings/gap.RESIDUAL": 1,
    "findings/published.PLACES": 1,
    "findings/published.NOT_TOLD": 1,
    "findings/published._lies": 1,
    "findings/published.inside_text": 1,
    "findings/screen._warnings": 1,
    "words/platforms.machine_headline": 1,
    "words/method.calibration_text": 1,
    "words/tally.tally_text": 1,
    "words/tally._open_loop": 1,
    "findings/bisect.stat_text": 1,
    "findings/bisect._steps": 1,
    "findings/code.BUILDS_HEADS": 1,
    "findings/compare._steps": 1,
    "findings/gap.document": 1,
    "findings/gap.TITLE": 1,
    "findings/platforms.LOG_HEADS": 2,
    "findings/platforms.COLUMNS": 1,
    "findings/platforms._unread": 1,
    "findings/matrix.LUCK": 1,
    "findings/running.HEADS": 1,
    "findings/running.KINDS": 1,
    "findings/search.PATH": 1,
    "findings/trend.OMITTED": 1,
    "findings/trial._of_reset": 2,
}
"""Places whose sentences hold such a word and state no inference: a heading, a method's name, a limit that
was set, or what a log explains."""


class Place(NamedTuple):
    """A function or constant, and its sentences."""

    name: str
    sentences: list[str]


def text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def texts_in(node: ast.AST) -> Iterator[str]:
    """All texts of some code, but not those that document it."""
    if (text := text_of(node)) is not None:
        yield text
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        for child in ast.iter_child_nodes(node):
            yield from texts_in(child)


def name_of(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return ast.unparse(target) if target is not None else ""


def places_in(code: str) -> Iterator[Place]:
    """Where code states inferences. A text of one word is a name."""
    for node in ast.parse(code).body:
        found = [text for text in texts_in(node) if " " in text.strip() and INFERENCE.search(text)]
        if found:
            yield Place(name_of(node), found)


@cache
def stated() -> dict[str, list[str]]:
    """The sentences of all reports, by their place."""
    files = [
        path
        for room in ("report/words", "findings")
        for path in sorted((ROOT / "src/dbdyno" / room).glob("*.py"))
    ]
    return {
        f"{path.parent.name}/{path.stem}.{place.name}": place.sentences
        for path in files
        for place in places_in(path.read_text(encoding="utf-8"))
    }


def unheld(found: dict[str, list[str]]) -> list[str]:
    """What has no line of its own here, or another number of sentences than its line has."""
    known = {name: one.sentences for name, one in CLAIMS.items()} | FACTS
    return [
        f"{place}: {sentence}"
        for place, sentences in found.items()
        if known.get(place) != len(sentences)
        for sentence in sentences
    ]


def test_every_sentence_that_states_an_inference_names_its_simulation() -> None:
    assert unheld(stated()) == []
    assert sorted(CLAIMS.keys() & FACTS.keys()) == []
    assert sorted((CLAIMS.keys() | FACTS.keys()) - stated().keys()) == []


@pytest.mark.parametrize("test", sorted({test for one in CLAIMS.values() for test in one.by}))
def test_every_simulation_that_is_named_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    files = [ROOT / "tests" / room / file for room in ("analyse", "findings")]
    codes = [one.read_text(encoding="utf-8") for one in files if one.exists()]
    assert name in {
        node.name for code in codes for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)
    }


def test_a_new_sentence_is_refused_until_it_has_a_simulation() -> None:
    code = 'def told(found):\n    """With an interval."""\n    return f"{found} is shown to be faster"\n'
    [place] = places_in(code)
    assert place == ("told", ["{} is shown to be faster"])
    assert unheld({f"words/new.{place.name}": place.sentences}) == [
        "words/new.told: {} is shown to be faster"
    ]
