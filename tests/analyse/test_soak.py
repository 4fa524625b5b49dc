"""Whether a rung stands follows from its records: what rises, what fills, and what a control takes off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analyse.soak import SoakResult, SoakVerdict, soaked
from dbdyno.analyse.steady import Rate, Standing
from dbdyno.driver.tally import Second
from dbdyno.findings.soak import findings
from dbdyno.records.metrics import GAUGES
from dbdyno.records.record import Check, Guested, Limit, Loss, Outcome, PhaseRecord, Record, Recovery
from dbdyno.study import BASELINE
from dbdyno.study.soak import Act
from tests.analyse.factory import STARTED_UNIX_S, records_of
from tests.analyse.soak_cases import (
    OTHER,
    RATE_PER_S,
    RUN,
    SECONDS,
    STUDY,
    Grows,
    Values,
    a_soak,
    filling,
    flat,
    leaking,
    rung,
    watched,
)


def test_a_leak_of_64_bytes_a_query_is_told_with_the_hours_that_are_left() -> None:
    found = a_soak(baseline=(leaking(64.0), flat))
    assert found.verdict is SoakVerdict.DRIFTS
    [drift] = next(one for one in found.rungs if one.variant == "baseline").drifts
    assert drift.standing is Standing.RISING
    assert drift.per_million is not None
    assert drift.per_million.low < 64e6 < drift.per_million.high
    left_bytes = 8e9 - (1e9 + 64.0 * RATE_PER_S * SECONDS)
    assert drift.hours == pytest.approx(left_bytes / (64.0 * RATE_PER_S) / 3600.0, rel=0.05)


def test_a_leak_is_told_though_its_load_slows_down() -> None:
    """By the clock it slows down as a cache does that fills; by the transactions it does not."""
    whole = rung(next(one for one in records_of(STUDY) if one.variant == BASELINE), flat)
    counts = np.round(RATE_PER_S * np.linspace(2.0, 0.1, SECONDS))
    tally = whole.phases[0].tally
    assert tally is not None
    series = tuple(
        Second(
            second=second,
            phase="measured",
            operations=int(count),
            errors=0,
            p50_us=1.0,
            p99_us=1.0,
            max_us=1.0,
        )
        for second, count in enumerate(counts)
    )
    count = int(counts.sum())
    tally = tally.but(series=series, operations=count, throughput_per_s=count / tally.duration_s)
    done = np.concatenate(([0.0], np.cumsum(counts)))
    grown = watched({"private_bytes": lambda time: 1e9 + 64.0 * done[time.astype(int)]}, STARTED_UNIX_S)
    sustained = whole.phases[0].but(tally=tally, watched=grown)
    found = soaked(STUDY, RUN, [whole.but(phases=(sustained, *whole.phases[1:]))])
    assert found.verdict is SoakVerdict.DRIFTS
    [memory] = [drift for drift in found.rungs[0].drifts if drift.gauge == "private_bytes"]
    assert memory.standing is Standing.RISING and memory.per_million is not None
    assert memory.per_million.value == pytest.approx(64e6, rel=0.02)


def test_a_slow_rise_is_not_carried_on_from_a_short_time_to_a_limit_far_away() -> None:
    found = a_soak(baseline=(leaking(1.0), flat))
    [drift] = next(one for one in found.rungs if one.variant == "baseline").drifts
    assert drift.per_s.low > 0.0 and drift.hours is None
    assert (drift.standing, found.verdict) == (Standing.EARLY, SoakVerdict.OPEN)
    assert any("too early to tell" in line for line in findings(found))


def test_a_rise_that_takes_years_to_its_limit_is_negligible() -> None:
    found = a_soak(baseline=(leaking(0.02), flat))
    [drift] = next(one for one in found.rungs if one.variant == "baseline").drifts
    assert drift.per_s.low > 0.0
    assert (drift.standing, found.verdict) == (Standing.NEGLIGIBLE, SoakVerdict.STANDS)


def test_a_server_that_stays_stands_down_to_so_many_bytes() -> None:
    found = a_soak()
    assert found.verdict is SoakVerdict.STANDS
    [drift] = found.rungs[0].drifts
    assert drift.standing is Standing.STEADY and drift.hours is None
    assert drift.per_million is not None and 0.0 < drift.per_million.high < 64e6


def test_a_cache_that_still_fills_is_open_and_no_leak() -> None:
    found = a_soak(baseline=(filling, flat))
    assert found.verdict is SoakVerdict.OPEN
    [drift] = next(one for one in found.rungs if one.variant == "baseline").drifts
    assert drift.standing is Standing.FILLING and drift.hours is None


@pytest.mark.parametrize(("leak_bytes", "verdict"), [(0.0, SoakVerdict.STANDS), (64.0, SoakVerdict.DRIFTS)])
@pytest.mark.parametrize(
    ("gauge", "filled_by"),
    [
        ("private_bytes", "cache_bytes"),
        ("resident_bytes", "cache_bytes"),
        ("resident_bytes", "shared_bytes"),
    ],
)
def test_memory_that_fills_the_engines_cache_is_no_leak(
    gauge: str, filled_by: str, leak_bytes: float, verdict: SoakVerdict
) -> None:
    whole = rung(next(one for one in records_of(STUDY) if one.variant == BASELINE), flat)
    filled = watched({filled_by: leaking(200.0)}, STARTED_UNIX_S).series[filled_by]
    grown = watched({gauge: leaking(200.0 + leak_bytes)}, STARTED_UNIX_S)
    limits = {gauge: Limit(most=8e9, source="the host's memory")}
    grown = grown.but(limits=limits)
    series = {**grown.series, filled_by: filled}
    sustained = whole.phases[0].but(watched=grown.but(series=series))
    record = whole.but(phases=(sustained, *whole.phases[1:]))
    found = soaked(STUDY, RUN, [record])
    assert found.verdict is verdict
    [memory] = [drift for drift in found.rungs[0].drifts if drift.gauge == gauge]
    assert memory.per_million is not None
    assert memory.per_million.value == pytest.approx(leak_bytes * 1e6, rel=0.01, abs=1e4)


def test_a_gauge_that_was_read_too_rarely_leaves_the_answer_open() -> None:
    whole = rung(next(one for one in records_of(STUDY) if one.variant == BASELINE), flat)
    sustained = whole.phases[0]
    assert sustained.watched is not None
    rare = (1.0, *[None] * (SECONDS - 1))
    series = {**sustained.watched.series, "heap_bytes": rare, "redo_bytes": rare}
    with_heap = sustained.but(watched=sustained.watched.but(series=series))
    record = whole.but(phases=(with_heap, *whole.phases[1:]))
    found = soaked(STUDY, RUN, [record])
    assert (found.verdict, found.rungs[0].unjudged) == (SoakVerdict.OPEN, ("heap_bytes",))
    assert any("too few readings to judge memory by the engine's own count" in one for one in findings(found))


def test_what_grows_at_rest_as_well_is_not_the_loads_doing() -> None:
    both = leaking(64.0)
    found = a_soak(baseline=(both, both), other=(both, both))
    # It is no drift, and what grows at rest reaches the limit all the same.
    assert found.verdict is SoakVerdict.OPEN
    assert {drift.standing for one in found.rungs for drift in one.drifts} == {Standing.UNSURE}
    # What falls at rest is no reason to expect growth under load.
    shrinking = leaking(-64.0)
    assert a_soak(baseline=(flat, shrinking), other=(flat, shrinking)).verdict is SoakVerdict.STANDS


def test_without_a_control_the_slope_stands_for_itself() -> None:
    found = a_soak(baseline=(leaking(64.0), None), other=(flat, None))
    assert found.verdict is SoakVerdict.DRIFTS
    assert all(drift.control is None for one in found.rungs for drift in one.drifts)


def test_a_variant_that_leaks_as_its_baseline_does_leaks_no_more_than_that() -> None:
    both = leaking(64.0)
    found = a_soak(baseline=(both, flat), other=(both, flat))
    [drift] = next(one for one in found.rungs if one.variant == OTHER).drifts
    assert drift.beyond_baseline is not None
    assert drift.beyond_baseline.low < 0.0 < drift.beyond_baseline.high
    worse = a_soak(baseline=(flat, flat), other=(both, flat))
    [drift] = next(one for one in worse.rungs if one.variant == OTHER).drifts
    assert drift.beyond_baseline is not None and drift.beyond_baseline.low > 0.0


def test_a_gauge_that_grows_with_what_is_written_is_told_and_not_judged() -> None:
    records = records_of(STUDY)
    grown = [rung(record, flat) for record in records]
    on_disk = watched({"disk_bytes": leaking(64.0), "private_bytes": flat}, STARTED_UNIX_S)
    first = grown[0].phases[0].but(watched=on_disk)
    grown[0] = grown[0].but(phases=(first, *grown[0].phases[1:]))
    found = soaked(STUDY, RUN, grown)
    assert found.verdict is SoakVerdict.STANDS
    assert [drift.standing for drift in found.rungs[0].drifts if drift.gauge == "disk_bytes"] == [
        Standing.RISING
    ]


def churned(record: Record, grows: Grows) -> Record:
    """The record with a phase in which 3,000 others came and went while memory grew so."""
    loaded = record.phases[0]
    later_s = STARTED_UNIX_S + 2 * SECONDS
    tally = loaded.tally and loaded.tally.but(started_unix_s=later_s)
    churn = PhaseRecord(
        name="churn",
        clients=8,
        tally=tally,
        watched=watched({"private_bytes": grows}, later_s),
        guests=(Guested(name="churn", clients=10, rounds=300),),
    )
    return record.but(phases=(loaded, churn, *record.phases[1:]))


def test_what_grows_with_connections_alone_is_told_by_the_thousand() -> None:
    first, *rest = (rung(record, flat) for record in records_of(STUDY))
    found = soaked(STUDY, RUN, [churned(first, leaking(64.0)), *rest])
    assert found.verdict is SoakVerdict.DRIFTS
    [drift] = [one for one in found.rungs[0].drifts if one.phase == "churn"]
    assert drift.standing is Standing.RISING and drift.per_thousand is not None
    grown_bytes = 64.0 * RATE_PER_S * SECONDS
    assert drift.per_thousand.low < grown_bytes / 3.0 < drift.per_thousand.high
    # What the load does by itself is not the connections' doing.
    found = soaked(STUDY, RUN, [churned(rung(first, leaking(64.0)), leaking(64.0)), *rest])
    [drift] = [one for one in found.rungs[0].drifts if one.phase == "churn"]
    assert drift.standing is Standing.STEADY


@pytest.mark.parametrize(
    ("longer", "standing", "verdict"),
    [(False, Standing.BRIEF, SoakVerdict.OPEN), (True, Standing.RISING, SoakVerdict.DRIFTS)],
)
def test_an_undo_log_that_rises_in_a_short_load_is_no_drift(
    monkeypatch: pytest.MonkeyPatch, longer: bool, standing: Standing, verdict: SoakVerdict
) -> None:
    least_s = SECONDS / 2 if longer else SECONDS * 2
    monkeypatch.setitem(GAUGES, "undo", replace(GAUGES["undo"], judged_after_s=least_s))
    records = [rung(record, flat) for record in records_of(STUDY)]
    rising = watched({"undo": leaking(64.0), "private_bytes": flat}, STARTED_UNIX_S)
    first = records[0].phases[0].but(watched=rising)
    records[0] = records[0].but(phases=(first, *records[0].phases[1:]))
    found = soaked(STUDY, RUN, records)
    assert found.verdict is verdict
    assert [drift.standing for drift in found.rungs[0].drifts if drift.gauge == "undo"] == [standing]


def test_what_fills_up_again_beside_others_is_no_drift() -> None:
    """An undo log that the pause between two phases has emptied."""
    first, *rest = (rung(record, flat) for record in records_of(STUDY))

    def refilling(time: Values) -> Values:
        return 1e9 * (0.1 + 0.8 * time / SECONDS)

    found = soaked(STUDY, RUN, [churned(first, refilling), *rest])
    [drift] = [one for one in found.rungs[0].drifts if one.phase == "churn"]
    assert (drift.standing, found.verdict) == (Standing.WITHIN, SoakVerdict.STANDS)
    found = soaked(STUDY, RUN, [churned(first, lambda time: 1.2 * refilling(time)), *rest])
    [drift] = [one for one in found.rungs[0].drifts if one.phase == "churn"]
    assert (drift.standing, found.verdict) == (Standing.RISING, SoakVerdict.DRIFTS)


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome.BROKEN, SoakVerdict.BROKEN),
        (Outcome.FAILED, SoakVerdict.FAILED),
        (Outcome.BLOCKED, SoakVerdict.BLOCKED),
    ],
)
def test_a_rung_that_ended_badly_says_so_whatever_grew(outcome: Outcome, verdict: SoakVerdict) -> None:
    records = [rung(record, leaking(64.0)) for record in records_of(STUDY)]
    told = {"outcome": outcome, "cause": "it died", "remedy": "look"}
    found = soaked(STUDY, RUN, [records[0].but(**told), records[1]])
    assert found.verdict is verdict
    assert (found.rungs[0].cause, found.rungs[0].remedy) == ("it died", "look")


def test_a_rung_that_was_cut_short_is_open() -> None:
    first, *_ = [rung(record, flat) for record in records_of(STUDY)]
    found = soaked(STUDY, RUN, [first.but(whole=False)])
    assert (found.verdict, found.rungs_left) == (SoakVerdict.OPEN, 1)


def test_a_soak_without_a_record_is_open() -> None:
    assert soaked(STUDY, RUN, []).verdict is SoakVerdict.OPEN


def test_a_phase_tells_its_checks_its_stop_and_its_start() -> None:
    record = rung(records_of(STUDY)[0], flat)
    lost = Check(name="balances_equal_after_stop", holds=False, detail="12, 13")
    last = record.phases[-1].but(checks=(lost,))
    record = record.but(phases=(*record.phases[:-1], last))
    seen = soaked(STUDY, RUN, [record]).rungs[0].phases[-1]
    assert seen.broken == ("balances_equal_after_stop: 12, 13",)
    assert seen.recovery is not None and seen.recovery.stop_s == 1.5


def test_a_difference_of_rates_is_as_wide_as_both_together() -> None:
    one, other = Rate(value=5.0, low=2.0, high=9.0), Rate(value=1.0, low=-3.0, high=4.0)
    assert one.less(other) == Rate(value=4.0, low=4.0 - 18.0**0.5, high=4.0 + 32.0**0.5)
    assert one.less(Rate(value=0.0, low=0.0, high=0.0)) == one


def after_a_torn_page(permits: Loss) -> SoakResult:
    """A rung whose last act took commits along and damaged the data."""
    whole = rung(next(one for one in records_of(STUDY) if one.variant == BASELINE), flat)
    recovery = Recovery(
        act=Act.TEAR, permits=permits, acknowledged=90, lost=3, lost_ms=4.0, damage="balances_equal: 3 apart"
    )
    check = Check(name="balances_equal", holds=False, detail="3 apart")
    last = PhaseRecord(name="tear", clients=8, checks=(check,), recovery=recovery)
    return soaked(STUDY, RUN, [whole.but(phases=(*whole.phases[:-1], last))])


def test_what_the_settings_permit_to_lose_is_a_price() -> None:
    found = after_a_torn_page(Loss.DATA)
    assert found.rungs[0].phases[-1].broken == ()
    [told] = [line for line in findings(found) if "torn-page cut" in line]
    assert "3 of 90 acknowledged transactions were gone" in told and "balances_equal: 3 apart" in told
    assert "the settings permit that" in told and "Nothing was done to the server after it" in told


@pytest.mark.parametrize("permits", [Loss.NOTHING, Loss.COMMITS])
def test_damage_that_the_settings_do_not_permit_breaks_the_phase(permits: Loss) -> None:
    found = after_a_torn_page(permits)
    assert found.rungs[0].phases[-1].broken == ("after a torn-page cut, balances_equal: 3 apart",)
    assert not any("permit" in line for line in findings(found))
