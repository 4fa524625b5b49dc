"""How a search's progress is told."""

from __future__ import annotations

from itertools import groupby

import pytest

from dbdyno.cli.searching import Searching
from dbdyno.plan.search.ask import next_block, trials_of
from tests.searches import a_search, carried_out, measured, two_changes_help


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
