"""The split of an operation's time: parts and remainder make the whole, and what cannot be is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analyse.columns import OfRecords
from dbdyno.analyse.found import TimeSplit
from dbdyno.analyse.split import microseconds, time_split
from dbdyno.driver.tally import Latency
from dbdyno.findings import analyse
from dbdyno.findings import split as split_report
from dbdyno.records.record import Outcome, Record
from tests.analyse.factory import OPEN_LOOP, a_run, a_study, broken, changed, counted, records_of
from tests.fakes import make_tally

STUDY = a_study()
RECORD = records_of(STUDY)[0]


def a_trial(totals: dict[str, float], series: dict[str, list[float]] | None = None, **tally: Any) -> Record:
    """One trial of 1000 operations in 10 s by 4 clients: 40 ms per client and operation."""
    assert RECORD.observation is not None
    observation = RECORD.observation.but(totals=totals, series=series or {}, duration_s=10.0)
    told = {"operations": 1000, "duration_s": 10.0, "clients": 4, "open_loop": None,
            "latency_us": latency_us(39_000.0),
            "driver_cpu_s": {"user": 1.0, "system": 2.0},
            "driver_run_wait_share": [0.05, 0.05]}  # fmt: skip
    return counted(changed(RECORD, observation=observation), **{**told, **tally})


def latency_us(mean: float) -> Latency:
    return make_tally().latency_us.but(mean=mean)


SERVER = {"server_cpu_user_s": 10.0, "server_cpu_system_s": 5.0, "run_queue_wait_s": 2.0}


def split_of(records: Sequence[Record]) -> TimeSplit | None:
    columns = OfRecords(records)
    return time_split("baseline", columns, columns.places, 0.95)


def the_split(*records: Record) -> TimeSplit:
    split = split_of(records)
    assert split is not None
    return split


def means(split: TimeSplit) -> dict[str, float]:
    return {part.name: part.mean for part in split.parts}


def test_each_part_is_its_seconds_over_the_operations() -> None:
    split = the_split(a_trial(SERVER))
    assert split.whole.mean == pytest.approx(40_000.0)
    assert means(split) == pytest.approx(
        {"server_user": 10_000.0, "server_system": 5_000.0, "server_wait": 2_000.0, "driver": 3_000.0,
         "driver_wait": 1_000.0, "remainder": 19_000.0}
    )  # fmt: skip
    assert split.parts[0].low is None, "one trial has no spread"


def test_in_open_loop_the_whole_is_the_mean_latency() -> None:
    whole = microseconds(a_trial(SERVER, open_loop=OPEN_LOOP, latency_us=latency_us(25_000.0)))
    assert whole is not None and whole["whole"] == 25_000.0


def test_think_time_is_no_time_of_the_server_or_the_disk() -> None:
    busy = means(the_split(a_trial(SERVER)))
    thinking = the_split(a_trial(SERVER, latency_us=latency_us(25_000.0)))
    parts = means(thinking)
    assert "pause" not in busy and parts["pause"] > 0.1 * thinking.whole.mean
    assert parts["remainder"] + parts["pause"] == pytest.approx(busy["remainder"])


def test_an_embedded_engines_wait_is_not_counted_twice() -> None:
    split = the_split(a_trial(SERVER, {"process_cpu_s": [1.0]}))
    assert "driver_wait" not in means(split) and split.missing == ("driver_wait",)
    assert means(split)["remainder"] == pytest.approx(20_000.0)


def test_parts_beyond_the_whole_are_said_and_leave_no_rest() -> None:
    split = the_split(a_trial({**SERVER, "server_cpu_user_s": 40.0}))
    assert split.beyond_us == pytest.approx(11_000.0)
    assert "remainder" not in means(split)
    assert "more than the whole, so parts of it ran" in split_report.note([split])


def test_a_part_that_one_trial_lacks_belongs_to_the_rest_of_all() -> None:
    lacking = {name: value for name, value in SERVER.items() if name != "run_queue_wait_s"}
    split = the_split(a_trial(SERVER), a_trial(lacking))
    assert "server_wait" in split.missing
    assert means(split)["remainder"] == pytest.approx(21_000.0)
    assert "Not measured here" in split_report.note([split])


def test_without_the_servers_cpu_there_is_no_split() -> None:
    assert split_of([a_trial({"run_queue_wait_s": 1.0})]) is None


def test_counters_give_rates_and_shares() -> None:
    counted = {**SERVER, "cycles": 45e9, "instructions": 30e9, "stalled_cycles_frontend": 9e9,
               "cache_misses": 5e6}  # fmt: skip
    facts = {fact.name: fact.mean for fact in the_split(a_trial(counted)).hardware}
    assert facts == pytest.approx(
        {"instructions_per_cycle": 2 / 3, "stalled_frontend_share": 0.2, "cycles_per_op": 45e6,
         "instructions_per_op": 30e6, "cache_misses_per_op": 5e3, "gigahertz": 3.0}
    )  # fmt: skip
    in_process = the_split(a_trial(counted, {"process_cpu_s": [1.0]}))
    assert {f.name: f.mean for f in in_process.hardware}["gigahertz"] == pytest.approx(45 / 18)


def test_the_engines_view_is_over_the_whole_load() -> None:
    record = a_trial(SERVER)
    assert record.observation is not None
    viewed = record.observation.but(engine_view={"syncs": 4000.0})
    loads = [
        counted(changed(record, observation=observation), acknowledged=2000)
        for observation in (viewed, record.observation)
    ]
    (fact,) = the_split(*loads).engine
    assert (fact.name, fact.mean, fact.trials) == ("syncs", 1.0, 2)


def test_only_measured_trials_count() -> None:
    records = records_of(STUDY, changes={"config.page_cache=64k": broken("12, 13")})
    splits = analyse(STUDY, a_run(STUDY), records).splits
    assert [split.variant for split in splits] == ["baseline"]
    assert all(record.outcome is Outcome.MEASURED for record in records if record.variant == "baseline")
    assert splits[0].trials == STUDY.blocks


@given(st.lists(st.tuples(*[st.floats(0, 20)] * 3), min_size=1, max_size=8))
def test_the_parts_add_up_to_the_whole(cpu: list[tuple[float, float, float]]) -> None:
    names = ("server_cpu_user_s", "server_cpu_system_s", "run_queue_wait_s")
    split = the_split(*(a_trial(dict(zip(names, values, strict=True))) for values in cpu))
    total = math.fsum(part.mean for part in split.parts)
    assert total == pytest.approx(split.whole.mean + split.beyond_us, rel=1e-9)
    assert ("remainder" in means(split)) == (split.beyond_us == 0.0)


def test_counters_that_were_refused_are_named_with_their_reason() -> None:
    trial = a_trial(SERVER)
    assert trial.observation is not None
    missing = {"cycles": "not permitted", "cache_misses": "not permitted", "frequency_hz": "no cycles"}
    observation = trial.observation.but(missing=missing)
    split = the_split(changed(trial, observation=observation))
    assert split.uncounted == {"cycles": "not permitted", "cache_misses": "not permitted"}
    assert "Not counted: cycles, cache misses (not permitted)." in split_report.note([split])


APPLICATION = {
    "application_cpu_user_s": 6.0,
    "application_cpu_system_s": 2.0,
    "application_run_queue_wait_s": 1.0,
}


def test_an_application_has_parts_of_its_own() -> None:
    parts = means(the_split(a_trial({**SERVER, **APPLICATION})))
    names = ("application_user", "application_system", "application_wait")
    assert [parts[name] for name in names] == pytest.approx([6_000.0, 2_000.0, 1_000.0])
    assert parts["remainder"] == pytest.approx(10_000.0)


def test_a_server_without_an_application_misses_none() -> None:
    assert the_split(a_trial(SERVER)).missing == ()
    assert "application" not in split_report.note([the_split(a_trial(SERVER))])
