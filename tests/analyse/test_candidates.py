"""What the records of a search tell of its candidates."""

from __future__ import annotations

import math

import pytest

from dbdyno.analyse.candidates import BROKEN, FAILED, Candidate, candidates_of, ranked, spread_of, took_s
from dbdyno.frozen import Level
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Goal, Guard
from dbdyno.study.trials import Purpose
from tests.fakes import make_tally
from tests.searches import TRIAL_S, a_search, a_tally

STUDY, RUN = a_search()
P99 = Guard(text="p99_ms <= 1.2x", metric="p99_ms", bound=1.2, relative=True)


def record(
    trial: int, block: int, variant: str, speed: float | None, p99_ms: float = 2.0, **levels: Level
) -> Record:
    """One trial of a search; without a speed it failed."""
    latency = {**dict(make_tally().latency_us), "p99": 1000.0 * p99_ms}
    tally = None if speed is None else a_tally(speed, latency_us=latency)
    return Record.model_validate(
        {
            "run": "first", "trial": trial, "block": block, "purpose": "search", "position": 0,
            "variant": variant, "levels": {**STUDY.baseline, **levels}, "host": "here",
            "started_unix_s": TRIAL_S * trial, "finished_unix_s": TRIAL_S * (trial + 1),
            "outcome": Outcome.FAILED if tally is None else Outcome.MEASURED,
            "cause": "it did not start" if tally is None else "",
            "phases": [] if tally is None else [{"name": "load", "tally": tally}],
        }
    )  # fmt: skip


def test_a_candidate_is_worth_its_log_ratio_in_each_block() -> None:
    records = [
        record(0, 0, "baseline", 100.0),
        record(1, 1, "baseline", 200.0), record(2, 1, "candidate-1", 400.0),
        record(3, 1, "candidate-2", 100.0),
        record(4, 2, "candidate-1", 100.0), record(5, 2, "baseline", 100.0),
    ]  # fmt: skip
    first, second = candidates_of(STUDY, records)
    assert first.log_ratios == pytest.approx((math.log(2), 0.0))
    assert first.blocks == (1, 2)
    assert first.worth == pytest.approx(math.log(2) / 2)
    assert second.worth == pytest.approx(-math.log(2))


def test_less_is_better_where_the_response_says_so() -> None:
    study = STUDY.but(goal=Goal(response="p99_ms"))
    records = [record(0, 1, "baseline", 1.0, p99_ms=4.0), record(1, 1, "candidate-1", 1.0, p99_ms=2.0)]
    [one] = candidates_of(study, records)
    assert one.worth == pytest.approx(math.log(2))


def test_a_failure_and_a_broken_guard_are_worse_than_all_that_was_measured() -> None:
    study = STUDY.but(goal=Goal(guards=(P99,)))
    records = [
        record(0, 1, "baseline", 100.0), record(1, 1, "candidate-1", 1.0),
        record(2, 1, "candidate-2", None), record(3, 1, "candidate-3", 900.0, p99_ms=4.0),
        record(4, 1, "candidate-4", 0.0),
    ]  # fmt: skip
    slow, failed, broken, idle = candidates_of(study, records)
    assert slow.worth > broken.worth > failed.worth == FAILED
    assert idle.worth == BROKEN
    assert failed.cause == "it did not start"
    assert broken.cause == "it broke the guard p99_ms <= 1.2x"
    assert [one.name for one in ranked([slow, failed, broken, idle])] == ["candidate-1"]


def test_a_block_without_a_baseline_tells_nothing_of_a_candidate() -> None:
    [one] = candidates_of(STUDY, [record(0, 1, "baseline", None), record(1, 1, "candidate-1", 100.0)])
    assert one.log_ratios == () and not one.cause
    assert ranked([one]) == []


def candidate(name: str, *log_ratios: float) -> Candidate:
    return Candidate(name=name, levels={}, log_ratios=log_ratios)


def test_one_lucky_block_does_not_lead_over_several_good_ones() -> None:
    lucky, good = candidate("lucky", 0.25), candidate("good", 0.2, 0.28, 0.2, 0.28)
    assert spread_of([lucky, good]) == pytest.approx(0.0462, abs=1e-4)
    assert [one.name for one in ranked([lucky, good])] == ["good", "lucky"]


def test_of_two_that_are_as_good_the_simpler_one_leads() -> None:
    simple = candidate("simple", 0.2).but(changes=1)
    rich = candidate("rich", 0.21).but(changes=6)
    assert [one.name for one in ranked([rich, simple])] == ["simple", "rich"]
    much_better = rich.but(log_ratios=(0.3,))
    assert [one.name for one in ranked([simple, much_better])] == ["rich", "simple"]


def test_what_was_confirmed_is_no_part_of_the_search() -> None:
    confirmed = record(1, 2, "candidate-1", 500.0).but(purpose=Purpose.CONFIRMATION)
    records = [record(0, 2, "baseline", 100.0), confirmed]
    assert candidates_of(STUDY, records) == ()
    assert took_s(records) == {Purpose.SEARCH: TRIAL_S, Purpose.CONFIRMATION: TRIAL_S}
