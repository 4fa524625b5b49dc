"""What is known of a winner's starts: the limit holds though the winner was chosen by some of them."""

from __future__ import annotations

import numpy as np
import pytest

from dbdyno.analyse.quantiles import confidence_each
from dbdyno.analyse.search import analyse_search
from dbdyno.analyse.starts import needed, share_most, starts_of
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import SearchRun
from dbdyno.report.words.search import sentences
from dbdyno.study import BASELINE, Study
from dbdyno.study.space import Search
from dbdyno.study.trials import Purpose
from tests.searches import a_search, carried_out, listed, step

FINALISTS, STARTS, RUNS = 3, 6, 4000
MOST = 248
"""Wrong limits of 4,000: a share of 5 % gives more in one series of a thousand (binomial law)."""


def searched(bad_starts: float | None, budget_s: float = 2000.0) -> tuple[Study, SearchRun, list[Record]]:
    """A search whose one candidate helps."""
    search = Search(time_s=budget_s, bad_starts=bad_starts)
    study, run = a_search(listed("config.log", 2), budget_s=budget_s, search=search)
    return study, run, carried_out(study, run, lambda levels: 0.3 * step(levels, "config.log"))


def wrong_limits(share: float, finalists: int) -> int:
    """How often the limit lies below the true share, where the best of some finalists wins."""
    random = np.random.default_rng(5)
    seen = random.binomial(STARTS, share, (RUNS, FINALISTS)).min(axis=1)
    each = confidence_each(0.95, finalists)
    return sum(share_most(bad, STARTS, each) < share for bad in seen.tolist())


@pytest.mark.parametrize("share", [0.2, 0.45, 0.5, 0.6])
def test_the_limit_holds_for_a_winner_that_its_starts_chose(share: float) -> None:
    assert wrong_limits(share, FINALISTS) <= MOST


def test_a_limit_that_ignores_the_choice_is_wrong_more_often() -> None:
    assert wrong_limits(0.4, finalists=1) > MOST


def test_a_winner_gets_as_many_starts_as_its_study_asks_for() -> None:
    study, run, records = searched(bad_starts=0.2)
    found = analyse_search(study, run, records).search
    assert found is not None
    assert found.starts is not None
    assert found.starts.count == found.starts.needed == needed(study, 1) == 14
    assert found.starts.share_most <= 0.2
    own = [record for record in records if record.purpose is Purpose.STARTS]
    assert {record.variant for record in own} == {BASELINE, found.winner}
    assert any(text.startswith("0 of 14 starts of the winner were bad") for text in sentences(found))


def test_a_search_that_asks_for_no_share_says_what_its_blocks_show() -> None:
    study, run, records = searched(bad_starts=None)
    assert all(record.purpose is not Purpose.STARTS for record in records)
    found = analyse_search(study, run, records).search
    assert found is not None
    assert any(
        "0 of 6 starts of the winner were bad" in text and "up to 39 %" in text for text in sentences(found)
    )


def test_where_the_time_is_over_the_report_says_what_is_lacking() -> None:
    study, run, records = searched(bad_starts=0.2)
    kept = [record for record in records if record.purpose is not Purpose.STARTS]
    found = analyse_search(study, run, kept).search
    assert found is not None
    assert any("takes 14 starts: the time was over" in text for text in sentences(found))


def test_a_start_that_fails_or_is_no_faster_is_bad() -> None:
    study, _, records = searched(bad_starts=None)
    own = [record for record in records if record.purpose is Purpose.CONFIRMATION]
    levels = next(record.levels for record in own if record.variant != BASELINE)
    slow, failing = [record for record in own if record.levels == levels][:2]
    baseline = next(one for one in own if one.block == slow.block and one.variant == BASELINE)
    changed = {
        slow.trial: slow.but(phases=baseline.phases),
        failing.trial: failing.but(outcome=Outcome.FAILED, phases=()),
    }
    found = starts_of(study, [changed.get(record.trial, record) for record in own], levels, 1)
    assert (found.count, found.bad) == (6, 2)
