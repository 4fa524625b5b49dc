"""Each statement has a way of its own along a line, by its time and by its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.analyse.bisect import Bisection, BisectionAnswer, StatementChange
from dbdyno.analyse.bisect_statements import statements_bisected
from dbdyno.findings.bisect import document, headline
from dbdyno.plan.bisect import ask
from dbdyno.records.record import Outcome
from dbdyno.study.trials import Along
from tests.bisections import World, carried_out

WORLD = World(
    last=9,
    loss=0.5,
    trial_sd=0.02,
    blocks=12,
    along=Along.VERSIONS,
    statements={"same": (None, None), "slow": (4, None), "slower": (7, None), "other": (None, 2)},
)


def found_in(world: World, seed: int = 1) -> tuple[Bisection, dict[str, StatementChange]]:
    run, records = carried_out(world, seed)
    found = statements_bisected(world.study, run, records)
    return found, {one.statement: one for one in found.statements or ()}


def test_each_statement_is_named_with_the_version_that_changed_it() -> None:
    found, by_name = found_in(WORLD)
    assert found.answer is BisectionAnswer.FOUND
    places = {name: (one.answer, one.bad, one.otherwise) for name, one in by_name.items() if name != "same"}
    assert places == {
        "slow": (BisectionAnswer.FOUND, 4, None),
        "slower": (BisectionAnswer.FOUND, 7, None),
        "other": (BisectionAnswer.NONE, 9, 2),
    }
    assert by_name["same"].answer is BisectionAnswer.NONE and by_name["same"].otherwise is None
    step = by_name["slow"].step
    assert step is not None and step.low is not None and step.low > 1.0 and step.ratio < 2.0
    told = headline(found)
    assert "2 of 4 statements became slower: slow between 3 and 4; slower between 6 and 7." in told
    assert "1 answered otherwise: other since 2." in told
    whole = document(found)
    assert [section.title for section in whole.sections][:2] == ["Statements", "Answers"]


def test_the_blocks_of_one_statement_place_the_others_as_well() -> None:
    both = replace(WORLD, statements={"a": (4, 4), "b": (4, 4)})
    _, alone = carried_out(replace(WORLD, statements={"a": (4, 4)}))  # fmt: skip
    _, records = carried_out(both)
    assert len(records) < 1.5 * len(alone), "each needs the same points"


def test_without_a_change_all_are_answered_alike() -> None:
    found, _ = found_in(World(last=5, along=Along.VERSIONS, blocks=6, statements={"a": (None, None)}))
    assert found.answer is BisectionAnswer.NONE
    assert headline(found) == "None of 1 statement became slower for certain, and all are answered alike."


def test_a_bad_end_that_is_lost_on_the_way_leaves_nothing_certain() -> None:
    world = replace(WORLD, statements={"slow": (4, None)})
    run, records = carried_out(world)
    last = max(place for place, one in enumerate(records[:12]) if one.variant == "9")
    lost = records[last].but(outcome=Outcome.FAILED, cause="out of memory")
    found = statements_bisected(world.study, run, [*records[:last], lost])
    assert found.answer is BisectionAnswer.NONE
    assert (
        headline(found) == "Nothing is certain of 1 statement, because the bad end was lost: out of memory."
    )


def test_a_version_that_does_not_start_is_stepped_over_by_answers_too() -> None:
    world = World(
        last=4, along=Along.VERSIONS, blocks=6, ends={2: Outcome.FAILED}, statements={"a": (None, 3)}
    )
    found, by_name = found_in(world)
    assert by_name["a"].otherwise == 3 and found.answer is BisectionAnswer.FOUND


@pytest.mark.parametrize("cut", [0, 5, 11, 20])
def test_one_that_was_cut_short_goes_on_as_if_nothing_had_happened(cut: int) -> None:
    run, records = carried_out(WORLD)
    asked = ask(WORLD.study, run, records[:cut][::-1])
    assert [trial.index for trial in asked] == [one.trial for one in records[cut : cut + len(asked)]]
    assert statements_bisected(WORLD.study, run, records[:cut]).answer is BisectionAnswer.UNFINISHED
