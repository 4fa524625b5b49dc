"""The search for a capacity: it ends near what is true, takes a lie back, and says where it cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbdyno.errors import BaselineFailed, DynoError
from dbdyno.plan.capacity import HIGHEST, LOWEST, capacity_of, few_above, next_rate, tried_rate
from dbdyno.records.capacity import TriedRate
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.study import Arrangement, Goal
from dbdyno.study.values import promise
from tests.fakes import Stages, make_study, make_tally
from tests.spine import carry_out, leftovers

P99 = promise("p99_ms <= 20")
OPEN = {"offered_per_s": 100.0, "achieved_per_s": 100.0, "backlog_max": 0, "backlog_end": 0, "kept": True}


def steps(kept: Callable[[float], bool], count: int = 12, closed_per_s: float = 1000.0) -> list[TriedRate]:
    """The steps of a trial whose server keeps the promise at such rates."""
    tried = list[TriedRate]()
    for _ in range(count):
        rate = next_rate(closed_per_s, tried)
        tried.append(TriedRate(rate_per_s=rate, kept=kept(rate), broke=() if kept(rate) else ("p99_ms",)))
    return tried


@pytest.mark.parametrize("truth_per_s", [15.0, 100.0, 310.0, 700.0, 990.0, 2500.0])
def test_a_search_without_chance_ends_at_the_truth(truth_per_s: float) -> None:
    found = capacity_of(1000.0, steps(lambda rate: rate <= truth_per_s), P99)
    assert found.per_s == pytest.approx(truth_per_s, rel=0.03)
    assert not found.at_least


def test_a_step_that_a_stall_broke_is_taken_back() -> None:
    tried = list[TriedRate]()
    for number in range(16):
        rate = next_rate(1000.0, tried)
        tried.append(TriedRate(rate_per_s=rate, kept=rate <= 700.0 and number != 2))
    assert next_rate(1000.0, tried) == pytest.approx(700.0, rel=0.1)


def test_the_answer_of_equal_steps_is_the_same() -> None:
    tried = steps(lambda rate: rate <= 420.0)
    assert next_rate(1000.0, tried) == next_rate(1000.0, list(tried))
    assert next_rate(2000.0, [one.but(rate_per_s=2 * one.rate_per_s) for one in tried]) == pytest.approx(
        2 * next_rate(1000.0, tried)
    )


def test_a_promise_that_nothing_keeps_is_told_with_what_was_seen() -> None:
    tried = [one.but(seen={"p99_ms": 31.5}) for one in steps(lambda rate: False)]
    with pytest.raises(
        DynoError, match=r"\(p99_ms <= 20\) held at none of 12 rates; .*p99_ms = 31.5"
    ) as caught:
        capacity_of(1000.0, tried, P99)
    assert "under [goal]" in caught.value.hint
    assert min(one.rate_per_s for one in tried) < 2 * LOWEST * 1000.0


def test_where_every_rate_keeps_the_promise_the_capacity_is_at_least_the_highest() -> None:
    tried = steps(lambda rate: True)
    found = capacity_of(1000.0, tried, P99)
    assert found.at_least
    assert found.per_s == max(one.rate_per_s for one in tried)
    assert found.per_s > 0.5 * HIGHEST * 1000.0
    assert "all rates kept the promise" in found.why


def test_a_rate_that_the_driver_could_not_offer_is_no_limit_of_the_server() -> None:
    tried = [one.but(by_driver=not one.kept) for one in steps(lambda rate: rate <= 500.0)]
    found = capacity_of(1000.0, tried, P99)
    assert found.at_least
    assert found.per_s <= 500.0
    assert "the driver had no CPU time left" in found.why


@pytest.mark.parametrize(
    ("written", "tally", "broke"),
    [
        ("p99_ms <= 20", {}, ()),
        ("p99_ms <= 2", {}, ("p99_ms",)),
        ("mean_ms <= 0.5, p50_ms <= 0.9", {}, ("mean_ms",)),
        ("errors <= 0.1 %", {"errors": {"x": 2}}, ("errors",)),
        ("errors <= 0.3 %", {"errors": {"x": 2}}, ()),
        ("retries <= 1 %", {"retries": 11}, ("retries",)),
        ("p99_ms <= 20", {"open_loop": {**OPEN, "kept": False}}, ("rate",)),
        # A short step in which the queue grows: the driver takes what waits for what is under way.
        ("errors <= 1 %", {"open_loop": {**OPEN, "achieved_per_s": 40.0}, "duration_s": 0.01}, ("rate",)),
        ("errors <= 1 %", {"open_loop": {**OPEN, "achieved_per_s": 96.0}, "duration_s": 0.01}, ()),
        ("errors <= 1 %", {"open_loop": {**OPEN, "achieved_per_s": 40.0}, "duration_s": 1.0}, ()),
    ],
)
def test_a_promise_is_judged_by_what_a_step_showed(
    written: str, tally: dict[str, Any], broke: tuple[str, ...]
) -> None:
    found = tried_rate(100.0, make_tally(**{"open_loop": OPEN, **tally}), promise(written))
    assert found.broke == broke
    assert found.kept is not bool(broke)
    assert set(found.seen) == {one.text.split()[0] for one in promise(written)}


def test_a_percentile_that_few_transactions_lie_above_is_told() -> None:
    found = capacity_of(1000.0, steps(lambda rate: rate <= 100.0), P99)
    assert "needs 10: " in few_above(found, 2.0, P99)
    assert few_above(found, 20.0, P99) == ""
    assert few_above(found, 0.1, promise("mean_ms <= 20, errors <= 1 %")) == ""


GOAL = Goal(response="capacity", promise=P99)


def require_found(records: list[Record]) -> None:
    assert {record.outcome for record in records} == {Outcome.MEASURED}
    for record in records:
        assert record.capacity is not None
        assert record.capacity.per_s == pytest.approx(
            int(str(record.levels["config.speed"])) * 800.0, rel=0.03
        )
        assert [phase.name for phase in record.phases] == ["load", *(f"rate {n}" for n in range(1, 13))]
        assert [phase.tried is None for phase in record.phases] == [True, *[False] * 12]
        # What a search asks for makes no trial doubtful.
        assert Doubt.RATE_NOT_KEPT not in record.doubts


def test_a_run_finds_the_capacity_of_each_variant(homes: Path) -> None:
    require_found(carry_out(make_study(1, 2, goal=GOAL)))
    assert leftovers() == []


def test_variants_that_run_side_by_side_make_each_step_in_the_same_turn(homes: Path) -> None:
    progress = Stages()
    study = make_study(1, 2, goal=GOAL, blocks=1, arrangement=Arrangement.SIDE_BY_SIDE)
    require_found(carry_out(study, progress))
    loads = [trial for trial, stage in progress.seen if stage == "drive"]
    turns = [set(loads[at : at + 2]) for at in range(0, len(loads), 2)]
    assert turns == [{0, 1}] * 13


def test_a_promise_that_the_baseline_never_keeps_ends_the_run_with_it(homes: Path) -> None:
    goal = GOAL.but(promise=promise("p99_ms <= 0.01"))
    with pytest.raises(BaselineFailed, match=r"\(p99_ms <= 0.01\) held at none of 12 rates"):
        carry_out(make_study(1, 2, goal=goal))
    assert leftovers() == []
