"""How a search's progress is told."""

from __future__ import annotations

from itertools import groupby

import pytest

from dbdyno.analyse.candidates import candidates_of, ranked
from dbdyno.cli.searching import Searching
from dbdyno.plan.search.ask import next_block, trials_of
from dbdyno.study.trials import Purpose
from tests.searches import a_search, carried_out, listed, measured, ranged, two_changes_help

FACTORS = (ranged("config.pool", 16), listed("config.log", 2), *(listed(f"config.f{n}", 3) for n in range(4)))


def test_the_best_so_far_and_the_time_left_are_told_after_each_block(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, run = a_search(budget_s=1500.0)
    records = carried_out(study, run, two_changes_help)
    progress = Searching(study, run)
    for number in range(len({record.block for record in records})):
        blocks = [list(own) for _, own in groupby(records, key=lambda one: one.block)]
        progress.seen([record for own in blocks[: number + 1] for record in own])
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "the baseline is measured; 25 min left"
    assert told[1].startswith("4 candidates tried; best candidate-")
    assert told[1].endswith("not confirmed; 24 min left")
    confirming = [one for one in told if one.startswith(f"1 of {study.blocks} blocks")]
    assert len(confirming) >= 2, "one for the confirmation, one for each round of the elimination"


def test_the_best_that_is_told_is_the_one_that_the_next_block_measures_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, run = a_search(*FACTORS, seed=2)
    records = carried_out(study, run, two_changes_help, trial_sd=0.1)
    searching = [record for record in records if record.purpose is Purpose.SEARCH]
    blocks = [list(own) for _, own in groupby(searching, key=lambda one: one.block)]
    progress, by_own_blocks = Searching(study, run), 0
    for number in range(2, len(blocks)):
        earlier = [record for own in blocks[:number] for record in own]
        tried = candidates_of(study, earlier)
        again = {record.variant for record in blocks[number]} & {one.name for one in tried}
        progress.seen(earlier)
        told = capsys.readouterr().err
        if again:
            [best] = again
            assert f"best {best}, " in told
            by_own_blocks += ranked(tried)[0].name == best
        else:
            assert "none seems better than the baseline yet" in told
    assert by_own_blocks < len(blocks) - 2, "luck never led, so nothing was shown"


def test_a_stage_is_named_when_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    study, run = a_search()
    block = next_block(lambda levels: 0, study, run, [])
    assert block is not None
    [trial] = trials_of(study, run, block, 0)
    progress = Searching(study, run)
    progress.trial_began(trial)
    progress.trial_ended(measured(trial, run, lambda levels: None))
    progress.trial_began(trial)
    said = "searching ...\n  baseline: failed: the server did not start\n"
    assert capsys.readouterr().err == said
