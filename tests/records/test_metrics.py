from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.driver.tally import ByClient, CpuPerOperation, Latency, Recall, Tally
from dbdyno.errors import UserError
from dbdyno.records.capacity import Capacity
from dbdyno.records.meanwhile import ActMeanwhile
from dbdyno.records.metrics import METRICS, ValueFormat, find, number_text
from dbdyno.records.record import Observation, Outcome, PhaseRecord, Record, Recovery
from dbdyno.study.soak import Act
from tests.analyse.factory import a_second
from tests.fakes import a_kind, make_tally, no_latency
from tests.load_hosts import make_load_host

TOTALS = {
    "server_cpu_user_s": 3.0,
    "server_cpu_system_s": 1.0,
    "driver_cpu_user_s": 0.5,
    "driver_cpu_system_s": 0.25,
    "context_switches_voluntary": 30_000.0,
    "context_switches_involuntary": 10_000.0,
    "read_bytes": 0.0,
    "written_bytes": 81_920_000.0,
    "run_queue_wait_s": 0.2,
    "cycles": 2_000_000.0,
    "instructions": 4_000_000.0,
    "cache_misses": 60_000.0,
    "dtlb_load_misses": 20_000.0,
    "stalled_cycles_frontend": 200_000.0,
    "stalled_cycles_backend": 400_000.0,
    "frequency_hz": 2.5e9,
    "steal_s": 0.5,
    "other_cpu_s": 0.25,
    "beside_cpu_s": 0.125,
    "written_bytes_between": 30.0,
    "written_bytes_in_all": 120.0,
    "cpu_s_between": 0.1,
    "cpu_s_in_all": 2.0,
    "quota_periods": 80.0,
    "throttled_periods": 20.0,
    "throttled_s": 1.5,
    "replay_lag_s": 0.0125,
    "replay_lag_bytes": 8_192.0,
    "receive_queue": 3.0,
    "transactions_behind": 7.0,
    "flow_control_s": 0.75,
    "node_aborts": 200.0,
    "disk_written_bytes": 900.0,
    "changed_row_bytes": 200.0,
    "table_file_bytes": 150.0,
    "row_bytes": 100.0,
    "resident_bytes_end": 100.0,
    "resident_bytes_max": 2.0**30,
}
LATENCY = Latency(
    count=20_000, sum=16e6, mean=800.0, min=100, p50=700, p90=1_000, p95=1_500, p99=4_000, p99_9=9_000,
    p99_99=11_000, max=12_345,
)  # fmt: skip
TALLY = make_tally(
    operations=20_000,
    acknowledged=20_000,
    duration_s=10.0,
    errors={"1213 deadlock": 30, "1205 lock wait timeout": 20},
    retries=100,
    latency_us=LATENCY,
    by_transaction={
        "new_order": a_kind(9_000, 10.0, LATENCY),
        "search": a_kind(8_000, 10.0, LATENCY),
    },
    recall=Recall(count=8_000, mean=0.93, min=0.2, p1=0.3, p5=0.5, p10=0.6, p50=0.95),
    driver_cpu_us_per_op=CpuPerOperation(user=3.5, system=1.5),
    by_client=ByClient(least=300, most=400),
    series=tuple(a_second(second, 1_500 if second % 2 else 2_500) for second in range(10)),
)
IDLE = {
    "operations": 0,
    "throughput_per_s": 0.0,
    "acknowledged": 0,
    "latency_us": no_latency(),
    "driver_cpu_us_per_op": CpuPerOperation(user=None, system=None),
    "by_transaction": {},
    "recall": None,
    "series": (),
}
"""What is otherwise where no transaction was done."""
EXPECTED = {
    "throughput": 2_000.0,
    "mean_ms": 0.8,
    "p50_ms": 0.7,
    "p90_ms": 1.0,
    "p95_ms": 1.5,
    "p99_ms": 4.0,
    "p99_9_ms": 9.0,
    "max_ms": 12.345,
    "frequency_ghz": 2.5,
    "steal_s": 0.5,
    "other_cpu_s": 0.25,
    "beside_cpu_s": 0.125,
    "written_between_share": 0.25,
    "cpu_between_share": 0.05,
    "throttled_s": 1.5,
    "throttled_share": 0.25,
    "server_cpu_us_per_op": 200.0,
    "server_cpu_user_us_per_op": 150.0,
    "server_cpu_system_us_per_op": 50.0,
    "driver_cpu_us_per_op": 5.0,
    "context_switches_per_op": 2.0,
    "run_queue_wait_us_per_op": 10.0,
    "cycles_per_op": 100.0,
    "instructions_per_op": 200.0,
    "cache_misses_per_op": 3.0,
    "dtlb_load_misses_per_op": 1.0,
    "stalled_cycles_frontend_per_op": 10.0,
    "stalled_cycles_backend_per_op": 20.0,
    "read_bytes_per_op": 0.0,
    "written_bytes_per_op": 4_096.0,
    "resident_bytes": 2.0**30,
    "ready_s": 0.75,
    "ready_after_stop_s": 0.5,
    "ready_after_kill_s": 1.25,
    "ready_after_cut_s": 2.0,
    "full_speed_after_stop_s": 0.4,
    "full_speed_after_kill_s": 0.6,
    "full_speed_after_cut_s": 0.9,
    "stop_s": 0.25,
    "capacity": 640.0,
    "new_orders_per_minute": 54_000.0,
    "queries_per_s": 800.0,
    "qps_at_recall": 800.0,
    "recall": 0.93,
    "errors_per_s": 5.0,
    "worst_second": 1_500.0,
    "cv": 0.25 * math.sqrt(10 / 9),
    "fairness": 0.75,
    "retries_per_op": 0.005,
    "failed_share": 0.0,
    "round_trip_us": 100.0,
    "round_trip_us_max": 200.0,
    "load_host_busy_share": 0.25,
    "load_host_steal_share": 0.05,
    "load_host_resent_share": 0.001,
    "replay_lag_ms": 12.5,
    "replay_lag_bytes": 8_192.0,
    "receive_queue": 3.0,
    "transactions_behind": 7.0,
    "flow_control_s": 0.75,
    "node_aborts_per_op": 0.01,
    "act_s": 2.0,
    # Four seconds before that scatter so show no dip, and the smallest that could be seen counts.
    "dip_depth": 1.0
    - math.sqrt(15) / 4 * math.exp(-3.182446 * math.log(5 / 3) / math.sqrt(3) * math.sqrt(1.25)),
    "dip_s": 1.0,
    "dip_lost_s": 2.353363 * math.sqrt(1 / 12) * math.sqrt(2 + 2**2 / 4),
    "dip_p99_ms": 5.2,
    "write_amplification": 4.5,
    "space_amplification": 1.5,
}


OF_ONE_WORKLOAD = ("new_orders_per_minute", "queries_per_s", "qps_at_recall")
OF_SEARCHES = OF_ONE_WORKLOAD[1:]
"""Metrics of vector_search."""

RECOVERIES = (
    Recovery(act=Act.STOP, stop_s=0.25, ready_s=0.5),
    Recovery(act=Act.KILL, ready_s=1.25, full_speed_s=0.4),
    Recovery(act=Act.CUT, ready_s=9.0, full_speed_s=0.6),
    Recovery(act=Act.CUT, ready_s=1.0, full_speed_s=0.8),
    Recovery(act=Act.CUT, ready_s=2.0, full_speed_s=1.0),
    Recovery(act=Act.CUT, damage="it did not start"),
)
RESTARTS = [PhaseRecord(name=f"{one.act}-{number}", recovery=one) for number, one in enumerate(RECOVERIES)]

ACT = ActMeanwhile(name="alter", text="ALTER", at_s=4.0, began_s=4.0, took_s=2.0, done=True)
LOAD_HOST = make_load_host(steal_s=2.0)


def record(tally: Tally | None, totals: dict[str, float] | None, ready_s: float | None) -> Record:
    load_hosts = (make_load_host(), LOAD_HOST) if totals else ()
    observation = None if totals is None else Observation(duration_s=10.0, totals=totals)
    return Record(
        run="r", trial=0, block=0, position=0, variant="baseline", levels={}, host="h", started_unix_s=0,
        finished_unix_s=1, outcome=Outcome.MEASURED, ready_s=ready_s,
        phases=(
            PhaseRecord(
                name="load", tally=tally, observation=observation, load_hosts=load_hosts,
                meanwhile=(ACT,) if totals else (),
            ),
            *([] if ready_s is None else RESTARTS),
        ),
        capacity=Capacity(per_s=640.0) if totals else None,
    )  # fmt: skip


@pytest.mark.parametrize("name", list(METRICS))
def test_each_metric_is_read_from_a_full_record(name: str) -> None:
    tally = TALLY.but(workload="vector_search" if name in OF_SEARCHES else "tpcc")
    assert find(name).read(record(tally, TOTALS, 0.75)) == pytest.approx(EXPECTED[name])


@pytest.mark.parametrize("name", OF_ONE_WORKLOAD)
def test_a_users_transaction_is_not_taken_for_a_built_in_one_of_its_name(name: str) -> None:
    tally = TALLY.but(workload="script")
    assert find(name).read(record(tally, TOTALS, 0.75)) is None


@pytest.mark.parametrize("name", list(METRICS))
@pytest.mark.parametrize(
    ("tally", "totals"),
    [(None, None), (None, {}), (make_tally(duration_s=0.0, **IDLE), {})],
)
def test_nothing_is_made_up_where_a_record_lacks_it(
    name: str, tally: Tally | None, totals: dict[str, float] | None
) -> None:
    assert find(name).read(record(tally, totals, None)) is None


def test_a_trial_without_operations_has_no_figure_per_operation() -> None:
    idle = record(TALLY.but(**IDLE), TOTALS, 0.75)
    assert [name for name in METRICS if name.endswith("_per_op") and find(name).read(idle) is not None] == []
    assert find("throughput").read(idle) == 0.0


def test_a_total_that_could_not_be_read_hides_only_its_own_metrics() -> None:
    partial = record(
        TALLY, {name: value for name, value in TOTALS.items() if name != "server_cpu_system_s"}, 0.75
    )
    hidden = [name for name in METRICS if name not in OF_ONE_WORKLOAD and find(name).read(partial) is None]
    assert hidden == ["server_cpu_us_per_op", "server_cpu_system_us_per_op"]


def test_a_search_that_finds_too_little_has_no_speed_at_recall() -> None:
    assert TALLY.recall is not None
    recall = TALLY.recall.but(mean=0.89)
    hasty = record(TALLY.but(recall=recall, workload="vector_search"), TOTALS, 0.75)
    assert find("qps_at_recall").read(hasty) is None
    assert find("queries_per_s").read(hasty) == 800.0


def test_every_metric_says_what_it_is() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title and metric.definition.endswith(".") and metric.definition[0].isupper()
    assert [name for name, metric in METRICS.items() if metric.higher_is_better] == [
        "throughput",
        "capacity",
        "new_orders_per_minute",
        "queries_per_s",
        "qps_at_recall",
        "recall",
        "worst_second",
        "fairness",
        "frequency_ghz",
    ]
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)


def test_the_documentation_lists_every_metric_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "study-format.md").read_text()
    for metric in METRICS.values():
        unit = f"bytes {metric.unit}".strip() if metric.style is ValueFormat.BYTES else metric.unit
        better = {"higher": "↑", "lower": "↓"}[metric.direction]
        assert f"| `{metric.name}` | {metric.title} | {unit} | {better} |" in page


def test_an_unknown_metric_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError) as caught:
        find("p9_ms")
    assert "did you mean p99_ms?" in caught.value.hint


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1, "1.000"), (3.14159, "3.142"), (99.996, "100.0"), (999.96, "1,000"), (12345.6, "12,346"),
        (1_234_567, "1,234,567"), (0.001234, "0.001234"), (-12.3456, "-12.35"), (math.inf, "inf"),
    ],
)  # fmt: skip
def test_numbers_have_four_digits_that_count(value: float, text: str) -> None:
    assert number_text(value) == text


@given(st.floats(1e-5, 1e15))
def test_a_written_number_is_within_its_last_digit(value: float) -> None:
    assert float(number_text(value).replace(",", "")) == pytest.approx(value, rel=6e-4)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1000, "1,000 B"), (4096, "4.000 KiB"), (1.5e9, "1.397 GiB"), (2.0**50, "1,024 TiB")],
)
def test_bytes_carry_their_unit(value: float, text: str) -> None:
    assert find("resident_bytes").format(value) == text
