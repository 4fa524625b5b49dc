"""The judgement after the load: what breaks a trial, and what only makes it doubtful."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.driver.load import Invariant
from dbdyno.records.record import Check, Doubt, Observation
from dbdyno.study.trials import Trial
from dbdyno.trial.check import judge_load_host, judge_trial
from dbdyno.trial.nodes import checks_of_invariants
from tests.fakes import FakeEngine, Stages, a_slice, make_tally, no_latency
from tests.load_hosts import make_load_host, reading
from tests.report.words.replay_cases import REPLAY
from tests.spine import two_phases

CALM = Observation(duration_s=10.0, totals={"steal_s": 0.0, "other_cpu_s": 0.1})
HOLDS = [Invariant(name="balances_equal", holds=True, detail="12, 12")]


def test_a_clean_trial_has_no_warning() -> None:
    checks, warnings = judge_trial(make_tally(), HOLDS, [], CALM, cores=2)
    assert all(check.holds for check in checks)
    assert warnings == {}


def test_a_trial_without_a_success_is_broken_and_says_why() -> None:
    tally = make_tally(operations=0, errors={"1054 unknown column": 3, "1146 no such table": 9})
    checks, _ = judge_trial(tally, HOLDS, [], CALM, cores=2)
    [operations] = [check for check in checks if not check.holds]
    assert operations.detail.endswith("errors: 1146 no such table (9), 1054 unknown column (3)")


def test_a_trial_without_an_answer_says_so() -> None:
    checks, _ = judge_trial(make_tally(operations=0, unfinished=3), HOLDS, [], CALM, cores=2)
    [operations] = [check for check in checks if not check.holds]
    assert operations.detail == "0 transactions succeeded, and 3 had no answer when the load was over"


def test_a_hurt_invariant_is_kept_with_its_detail() -> None:
    hurt = [Invariant(name="balances_equal", holds=False, detail="account 12, teller 11")]
    checks, _ = judge_trial(make_tally(), hurt, [], CALM, cores=2)
    assert [(check.name, check.detail) for check in checks if not check.holds] == [
        ("balances_equal", "account 12, teller 11")
    ]


def test_a_trial_that_lost_clients_is_broken_and_says_what_is_unknown() -> None:
    lost = {"connection lost": 3}
    tally = make_tally(clients=8, clients_lost=3, unknown=2, errors=lost)
    [clients] = [check for check in judge_trial(tally, HOLDS, [], CALM, cores=2)[0] if not check.holds]
    assert (clients.name, clients.detail) == (
        "clients",
        "3 of 8 clients lost their connection and did not get it back; whether 2 transactions took effect is "
        "unknown; errors: connection lost (3)",
    )
    # What was under way at the end of a load is unknown as well, and says nothing of its speed.
    assert all(check.holds for check in judge_trial(make_tally(unknown=2), HOLDS, [], CALM, cores=2)[0])


def test_errors_warn_beyond_one_in_a_thousand() -> None:
    few, many = {"1213 deadlock": 1}, {"1213 deadlock": 2}
    assert Doubt.ERRORS_IN_LOAD not in judge_trial(make_tally(errors=few), HOLDS, [], CALM, 2)[1]
    warnings = judge_trial(make_tally(errors=many), HOLDS, [], CALM, 2)[1]
    assert warnings[Doubt.ERRORS_IN_LOAD].startswith("2 errors that were not retried and 1000 successful")


def test_an_error_that_was_retried_does_not_warn() -> None:
    tally = make_tally(errors={"1213 deadlock": 900}, retries=900)
    assert judge_trial(tally, HOLDS, [], CALM, 2)[1] == {}


def test_the_drivers_own_limits_warn() -> None:
    loop = {"offered_per_s": 100.0, "achieved_per_s": 60.0, "backlog_max": 9, "backlog_end": 9, "kept": False}
    warnings = judge_trial(make_tally(saturated="thread 0 at 99 %", open_loop=loop), HOLDS, [], CALM, 2)[1]
    assert warnings == {
        Doubt.DRIVER_SATURATED: "thread 0 at 99 %",
        Doubt.RATE_NOT_KEPT: "offered 100/s, achieved 60/s; 9 transactions waited for a client at the end",
    }


def test_a_replay_that_the_driver_was_late_for_is_doubted() -> None:
    late = REPLAY.but(late_by_driver=20)
    told = judge_trial(make_tally(replay=late), HOLDS, [], CALM, 2)[1]
    assert told == {Doubt.REPLAY_LATE: "20 of 1000 statements (2.0%) began late by the driver"}
    assert judge_trial(make_tally(replay=REPLAY), HOLDS, [], CALM, 2)[1] == {}


def test_slices_in_which_a_client_ends_fewer_than_two_transactions_make_a_trial_doubtful() -> None:
    slices = [a_slice(1.0 + one, 0.5, 500) for one in range(2)]
    doubt = "a client did 1.9 transactions in a slice of 0.5 s, on average of the slices"
    assert judge_trial(make_tally(clients=250, slices=slices), HOLDS, [], CALM, 2)[1] == {}
    told = judge_trial(make_tally(clients=260, slices=slices), HOLDS, [], CALM, 2)[1]
    assert told == {Doubt.SHORT_SLICES: doubt}
    apart = {"clients": 2, "slices": slices, "by_client": {"least": 3.8, "most": 996.2}}
    assert judge_trial(make_tally(**apart), HOLDS, [], CALM, 2)[1] == {Doubt.SHORT_SLICES: doubt}, (
        "the slowest"
    )
    assert judge_trial(make_tally(clients=600), HOLDS, [], CALM, 2)[1] == {}, "a whole load begins once"


def test_servers_that_work_without_a_slice_make_a_trial_doubtful() -> None:
    slices = [a_slice(1.0, 0.5, 1000)]
    busy = Observation(duration_s=10.0, totals={"beside_cpu_s": 1.2})
    assert judge_trial(make_tally(slices=slices), HOLDS, [], busy, 2)[1] == {
        Doubt.BESIDE_BUSY: "servers without a slice took 6.0% of the host's CPU time"
    }
    assert judge_trial(make_tally(), HOLDS, [], busy, 2)[1] == {}, "a soak's guests are there on purpose"


@pytest.mark.parametrize(
    ("cpu_s", "mib", "told"),
    [
        (0.05, 14.0, ""),
        (0.06, 0.0, "6% of its CPU time"),
        (0.0, 17.0, "85% of its writes, faster than under its load"),
        (0.2, 17.0, "20% of its CPU time; 85% of its writes, faster than under its load"),
    ],
)
def test_work_that_is_put_off_until_others_have_their_turn_makes_a_trial_doubtful(
    cpu_s: float, mib: float, told: str
) -> None:
    # Of five servers, four of which had 2 s while this one had 0.5.
    slices = [a_slice(1.0 + 2.5 * number, 0.5, 1000) for number in range(3)]
    totals = {"cpu_s_between": cpu_s, "cpu_s_in_all": 1.0}
    totals |= {"written_bytes_between": mib * 2**20, "written_bytes_in_all": 20.0 * 2**20}
    seen = Observation(duration_s=10.0, totals=totals)
    doubts = judge_trial(make_tally(slices=slices), HOLDS, [], seen, 2)[1]
    assert doubts == ({Doubt.DEFERRED: f"in the turns of others the server had {told}"} if told else {})
    assert judge_trial(make_tally(), HOLDS, [], seen, 2)[1] == {}


def test_a_server_that_did_nothing_put_nothing_off() -> None:
    # Clocks are read apart, so the slices can last longer than the time that they lie in.
    slices = [a_slice(1.0, 0.5, 1000), a_slice(1.4, 0.5, 1000)]
    zero = dict.fromkeys(
        ("cpu_s_between", "cpu_s_in_all", "written_bytes_between", "written_bytes_in_all"), 0.0
    )
    for totals in (zero, {}):
        seen = Observation(duration_s=10.0, totals=totals)
        assert judge_trial(make_tally(slices=slices), HOLDS, [], seen, 2)[1] == {}


def test_a_driver_that_waits_for_a_cpu_makes_a_trial_doubtful_unless_it_is_to_wait() -> None:
    def doubt(wait: float, busy: float, **changes: object) -> str | None:
        shares = {"driver_run_wait_share": [0.1, wait], "driver_busy_share": [0.2, busy]}
        tally = make_tally(**shares, **{"threads": 2, **changes})
        checks, doubts = judge_trial(tally, HOLDS, [], CALM, 2)
        assert all(check.holds for check in checks)
        return doubts.get(Doubt.DRIVER_WAITED)

    told = "driver thread 1 was ready and had no CPU 50% of the time, beside 30% in which it ran"
    assert doubt(0.5, 0.3) == told
    assert doubt(0.49, 0.51) is None
    assert doubt(0.87, 0.13) is not None, "how little it has to do is no excuse"
    assert doubt(0.5, 0.0) is not None
    assert doubt(0.55, 0.3, backend="blocking") is None, "an embedded engine's threads are the server's"
    assert doubt(0.55, 0.3, sched_batch=True) is None, "the server goes first"


def test_a_noisy_host_warns_with_the_share_of_all_its_cpus() -> None:
    noisy = Observation(duration_s=10.0, totals={"steal_s": 0.5, "other_cpu_s": 2.0})
    warnings = judge_trial(make_tally(), HOLDS, [], noisy, cores=2)[1]
    assert warnings == {
        Doubt.STEAL: "the hypervisor took 2.5% of the host's CPU time",
        Doubt.HOST_BUSY: "other processes took 10.0% of the host's CPU time",
    }


def test_a_quota_from_outside_warns_and_the_studys_own_does_not() -> None:
    asked = {"throttled_s": 9.0, "outer_throttled_s": 0.05, "throttled_periods": 90.0, "quota_periods": 100.0}
    own = Observation(duration_s=10.0, totals=asked)
    assert judge_trial(make_tally(), HOLDS, [], own, cores=2)[1] == {}
    outer = Observation(duration_s=10.0, totals={**asked, "outer_throttled_s": 4.25})
    assert judge_trial(make_tally(), HOLDS, [], outer, cores=2)[1] == {
        Doubt.THROTTLED: "a CPU quota from outside the study held threads back for 4.25 s, summed over CPUs"
    }


def test_a_load_host_is_judged_by_the_limits_of_this_host() -> None:
    tally = make_tally(latency_us=no_latency().but(count=1, mean=4_000.0))
    assert judge_load_host(make_load_host(), tally) == {}
    busy = make_load_host(driver_s=7.0, steal_s=0.5)
    assert judge_load_host(busy, tally) == {
        Doubt.LOAD_HOST_BUSY: "the hypervisor took 1.2% of the CPU time of load1; what is not the driver took"
        " 7.5% of the CPU time of load1"
    }


def test_a_load_that_waits_for_the_network_is_doubted() -> None:
    tally = make_tally(latency_us=no_latency().but(count=1, mean=500.0))
    assert judge_load_host(make_load_host(), tally) == {
        Doubt.NETWORK_BOUND: "one round trip takes 100 us, 20% of a mean latency of 500 us"
    }


def test_a_link_that_became_slower_is_doubted() -> None:
    tally = make_tally(latency_us=no_latency().but(count=1, mean=100_000.0))
    steady = make_load_host(readings=(reading(200.0), reading(1_390.0)))
    assert judge_load_host(steady, tally) == {}, "a wake-up takes as long"
    assert judge_load_host(make_load_host(readings=(reading(800.0), reading(4_000.0))), tally) == {
        Doubt.LINK_UNSTEADY: "the shortest round trip went from 400 to 2000 us"
    }


def test_a_network_that_loses_what_is_sent_is_doubted() -> None:
    tally = make_tally(latency_us=no_latency().but(count=1, mean=100_000.0))
    assert judge_load_host(make_load_host(segments_resent=100.0), tally) == {
        Doubt.LINK_UNSTEADY: "load1 sent 1.0% of its TCP segments again"
    }


def test_a_long_log_is_cut_and_says_so() -> None:
    warnings = judge_trial(make_tally(), HOLDS, [f"[ERROR] {n}" for n in range(8)], CALM, 2)[1]
    assert warnings[Doubt.SERVER_LOG].endswith("[ERROR] 4 | and 3 more")


def test_a_phase_tells_what_the_log_says_of_it_alone(homes: Path) -> None:
    engine = FakeEngine()

    def complain(_trial: Trial, stage: str) -> None:
        if stage == "check":
            problems = engine.servers[-1].problems
            problems.append(f"[ERROR] {len(problems) + 1}")

    record, _ = two_phases(Stages(complain), engine=engine)
    assert [phase.doubts.get(Doubt.SERVER_LOG) for phase in record.phases] == ["[ERROR] 1", "[ERROR] 2"]


EQUAL = Invariant(name="balances_equal", holds=False, detail="7 against 8")


def test_a_check_says_what_was_found_and_after_what() -> None:
    plain = Check(name="balances_equal", holds=False, detail="7 against 8")
    assert checks_of_invariants([EQUAL]) == (plain,)
    [later] = checks_of_invariants([EQUAL], after="cut")
    assert later == plain.but(name="balances_equal_after_cut")
