"""A bisection asks few questions, never twice the same, and goes on where it was cut short."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.errors import BaselineFailed
from dbdyno.kinds.registry import ask_for
from dbdyno.plan.bisect import ask
from dbdyno.records.record import Outcome
from dbdyno.study import BASELINE
from tests.bisections import World, carried_out, measured


def test_every_block_holds_the_good_end() -> None:
    world = World(last=16, slow=11, loss=0.1)
    _, records = carried_out(world)
    blocks = {record.block for record in records}
    for block in blocks:
        assert BASELINE in {record.variant for record in records if record.block == block}


def test_trials_have_numbers_of_their_own_and_blocks_of_other_points_begin_a_pair() -> None:
    _, records = carried_out(World(last=16, slow=5, loss=0.1, executed=0.05))
    assert len({record.trial for record in records}) == len(records)
    timed = [record for record in records if not record.of_no_block]
    held: dict[int, set[str]] = {}
    for record in timed:
        held.setdefault(record.block, set()).add(record.variant)
    for block, variants in held.items():
        if held.get(block - 1) != variants:
            assert block % 2 == 0


@pytest.mark.parametrize("executed", [None, 0.05])
def test_one_that_was_cut_short_goes_on_as_if_nothing_had_happened(executed: float | None) -> None:
    world = World(last=16, slow=11, loss=0.1, executed=executed)
    run, records = carried_out(world)
    for cut in range(0, len(records), 3):
        kept, rest = records[:cut], records[cut:]
        asked = ask(world.study, run, kept[::-1])
        assert [trial.index for trial in asked] == [record.trial for record in rest[: len(asked)]]
        assert [trial.variant.name for trial in asked] == [record.variant for record in rest[: len(asked)]]
    assert ask(world.study, run, records) == ()


def test_a_record_that_is_not_whole_is_measured_again() -> None:
    world = World(last=4)
    run = world.run()
    trials = ask(world.study, run, ())
    first, second = measured(world, trials, np.random.default_rng(1))
    again = ask_for(run)(world.study, run, [first, second.but(whole=False)])
    assert [trial.index for trial in again] == [second.trial]


def test_counts_place_a_point_without_a_block() -> None:
    _, records = carried_out(World(last=64, slow=40, executed=0.05))
    by_time = {record.variant for record in records if not record.of_no_block}
    counted = {record.variant for record in records if record.of_no_block}
    assert by_time == {BASELINE, "c64", "c39", "c40"}
    assert {"c39", "c40"} < counted and len(counted) <= 8


@pytest.mark.parametrize("place", [0, 8])
def test_an_end_that_has_no_speed_ends_it(place: int) -> None:
    world = World(last=8, slow=3, ends={place: Outcome.FAILED})
    with pytest.raises(BaselineFailed, match="the compiler refused it"):
        carried_out(world)
