"""Totals and percentiles that other tools print: in the forms of their versions, whole and spoilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.analyse.latency import summed
from dbdyno.errors import UserError
from dbdyno.imported import TOOLS
from dbdyno.imported.files import Repetition
from dbdyno.imported.tallies import CountedRepetition

HAMMERDB = """\
Vuser 1:Beginning rampup time of 2 minutes
Vuser 1:Rampup 2 minutes complete ...
Vuser 1:Timing test period of 5 in minutes
Vuser 1:Test complete, Taking end Transaction Count.
Vuser 1:4 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 2400 NOPM from 5600 MariaDB TPM
Vuser 2:FINISHED SUCCESS
"""
PROFILED = """\
>>>>> VIRTUAL USER 2 : ELAPSED TIME : 420000ms
>>>>> PROC: NEWORD
CALLS: 3000\tMIN: 1.000ms\tAVG: 8.000ms\tMAX: 90.000ms\tTOTAL: 24000.000ms
P99: 40.000ms\tP95: 20.000ms\tP50: 7.000ms\tSD: 800.000\tRATIO: 40.000%
>>>>> SUMMARY OF 4 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 420000ms
>>>>> PROC: NEWORD
CALLS: 12000\tMIN: 0.500ms\tAVG: 2.000ms\tMAX: 81.000ms\tTOTAL: 24000.000ms
P99: 5.000ms\tP95: 3.000ms\tP50: 1.900ms\tSD: 800.000\tRATIO: 40.000%
>>>>> PROC: PAYMENT
CALLS: 12100\tMIN: 0.200ms\tAVG: 1.000ms\tMAX: 60.000ms\tTOTAL: 12100.000ms
P99: 3.000ms\tP95: 2.000ms\tP50: 0.900ms\tSD: 500.000\tRATIO: 20.000%
"""
GO_TPC = """\
[Current] NEW_ORDER - Takes(s): 4.6, Count: 5, TPM: 65.5, Sum(ms): 4604.0, Avg(ms): 920.0
Finished
[Summary] NEW_ORDER - Takes(s): 59.5, Count: 450, TPM: 453.8, Sum(ms): 4500.0, Avg(ms): 10.0, 50th(ms): 9.4, \
90th(ms): 12.6, 95th(ms): 14.2, 99th(ms): 20.4, 99.9th(ms): 35.7, Max(ms): 50.3
[Summary] NEW_ORDER_ERR - Takes(s): 59.5, Count: 3, TPM: 3.0, Sum(ms): 30.0, Avg(ms): 10.0, Max(ms): 20.0
[Summary] PAYMENT - Takes(s): 60.0, Count: 430, TPM: 430.0, Sum(ms): 2150.0, Avg(ms): 5.0, \
99th(ms): 9.0, Max(ms): 9.5
tpmC: 453.8, efficiency: 3528.8%
"""
YCSB = """\
[OVERALL], RunTime(ms), 50000
[OVERALL], Throughput(ops/sec), 200.0
[TOTAL_GCs], Count, 2
[READ], Operations, 5100
[READ], AverageLatency(us), 450.0
[READ], MinLatency(us), 254
[READ], MaxLatency(us), 3397
[READ], 95thPercentileLatency(us), 604
[READ], 99thPercentileLatency(us), 767
[READ], Return=OK, 5100
[CLEANUP], Operations, 1
[UPDATE], Operations, 4900
[UPDATE], AverageLatency(us), 600.0
[UPDATE], MinLatency(us), 410
[UPDATE], MaxLatency(us), 28127
[UPDATE-FAILED], Operations, 7
"""
GO_YCSB = """\
"threadcount"="16"
READ   - Takes(s): 10.0, Count: 100, OPS: 10.0, Avg(us): 90, Min(us): 80, Max(us): 100, 99th(us): 95
Run finished, takes 20.5s
READ   - Takes(s): 20.0, Count: 1000, OPS: 50.0, Avg(us): 100, Min(us): 80, Max(us): 900, 50th(us): 95, \
99th(us): 300, 99.9th(us): 800, 99.99th(us): 900
TOTAL  - Takes(s): 20.0, Count: 1000, OPS: 50.0, Avg(us): 100, Min(us): 80, Max(us): 900, 99th(us): 300
"""
WRK = """\
Running 30s test @ http://localhost
  3 threads and 50 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   298.00ms  376.08ms   3.05s    85.83%
    Req/Sec    91.60     58.81   740.00     72.65%
  Latency Distribution
     50%  158.00ms
     99%    1.66s
  3048 requests in 30.00s, 165.47MB read
  Socket errors: connect 0, read 2, write 0, timeout 5
  Non-2xx or 3xx responses: 48
Requests/sec:    101.60
Transfer/sec:    564.62KB
"""
BENCHBASE: dict[str, Any] = {
    "Start timestamp (milliseconds)": 1_700_000_000_000,
    "Elapsed Time (nanoseconds)": 10_000_000_000,
    "DBMS Type": "POSTGRES",
    "Benchmark Type": "tpcc",
    "Measured Requests": 1000,
    "terminals": "2",
    "Throughput (requests/second)": 100.0,
    "Goodput (requests/second)": 99.0,
    "Latency Distribution": {
        f"{name} Latency (microseconds)": value
        for name, value in (
            ("Minimum", 100), ("25th Percentile", 200), ("Median", 300), ("Average", 350),
            ("75th Percentile", 400), ("90th Percentile", 500), ("95th Percentile", 600),
            ("99th Percentile", 700), ("Maximum", 800),
        )
    },
}  # fmt: skip
K6: dict[str, Any] = {
    "metrics": {
        "http_reqs": {"count": 2000, "rate": 100.0},
        "http_req_duration": {"avg": 4.0, "min": 1.0, "med": 3.5, "max": 40.0, "p(90)": 7.0, "p(95)": 9.0},
        "http_req_failed": {"passes": 20, "fails": 1980, "value": 0.01},
        "iterations": {"count": 500, "rate": 25.0},
        "vus_max": {"value": 8, "min": 8, "max": 8},
    }
}
FIO: dict[str, Any] = {
    "fio version": "fio-3.33",
    "timestamp": 1_700_000_100,
    "jobs": [
        {
            "jobname": "mixed",
            "error": 0,
            "read": {
                "total_ios": 3000, "runtime": 30_000, "iops": 100.0,
                "clat_ns": {"min": 1000, "max": 9_000_000, "mean": 200_000.0, "N": 3000,
                            "percentile": {"50.000000": 150_000, "99.000000": 900_000}},
            },
            "write": {
                "total_ios": 1000, "runtime": 30_000,
                "clat_ns": {"min": 2000, "max": 5000, "mean": 3000.0, "N": 1000},
            },
            "trim": {"total_ios": 0},
        }
    ],
}  # fmt: skip


def read(folder: Path, tool: str, text: str) -> CountedRepetition:
    path = folder / "result"
    path.write_text(text)
    return TOOLS[tool].read(Repetition(str(path), (path,)), None)


def test_hammerdb_is_read_by_its_new_orders_whatever_its_version_wrote(tmp_path: Path) -> None:
    found = read(tmp_path, "hammerdb", HAMMERDB)
    assert (found.duration_s, found.operations, found.clients) == (300.0, 12_000, 4)
    assert found.tally.throughput_per_s == 40.0 and found.latency.mean is None
    assert "5,600 transactions a minute" in found.remarks[0]
    old = HAMMERDB.replace("2400 NOPM from 5600 MariaDB TPM", "5600 SQL Server TPM at 2400 NOPM")
    assert read(tmp_path, "hammerdb", old).operations == 12_000
    job = json.dumps(
        ["66a", "2026-11-01 10:00", *HAMMERDB.replace("Vuser 1:", "").splitlines()[-3:-1]], indent=1
    )
    alone = read(tmp_path, "hammerdb", job)
    assert (alone.duration_s, alone.operations, alone.clients) == (60.0, 2400, 4)
    assert any("not known" in remark for remark in alone.remarks)


def test_hammerdb_s_profile_is_that_of_all_users(tmp_path: Path) -> None:
    found = read(tmp_path, "hammerdb", HAMMERDB + PROFILED)
    assert (found.latency.p50, found.latency.p99, found.latency.max) == (1900.0, 5000.0, 81_000.0)
    assert found.kinds["PAYMENT"].operations == 12_100 and found.kinds["PAYMENT"].latency_us.p95 == 2000.0
    broken = read(
        tmp_path, "hammerdb", HAMMERDB + "Error in Virtual User 3: deadlock\nVuser 3:FINISHED FAILED\n"
    )
    assert broken.errors == {"virtual user": 2}


def test_benchbase_counts_what_succeeded(tmp_path: Path) -> None:
    found = read(tmp_path, "benchbase", json.dumps(BENCHBASE))
    assert (found.duration_s, found.operations, found.clients) == (10.0, 990, 2)
    assert found.started_unix_s == 1_700_000_000.0 and found.errors == {"no goodput": 10}
    assert (found.latency.p50, found.latency.p99, found.latency.mean) == (300.0, 700.0, 350.0)
    old = {key: value for key, value in BENCHBASE.items() if not key.startswith(("Measured", "Elapsed"))}
    assert any("not known" in remark for remark in read(tmp_path, "benchbase", json.dumps(old)).remarks)


RAW = """\
Transaction Type Index,Transaction Name,Start Time (microseconds),Latency (microseconds),\
Worker Id (start number),Phase Id (index in config file)
1,NewOrder,1700000000.500000,1000,0,1
2,Payment,1700000000.500500,3000,1,1
1,NewOrder,1700000002.498000,2000,0,1
"""


def test_benchbase_s_raw_csv_has_each_transaction(tmp_path: Path) -> None:
    found = read(tmp_path, "benchbase", RAW)
    assert (found.operations, found.clients, found.started_unix_s) == (3, 2, 1_700_000_000.5)
    assert found.duration_s == pytest.approx(2.0) and found.latency.p50 == 2000.0
    assert summed([found.histogram]).count == 3 and found.kinds["NewOrder"].operations == 2
    assert [(one.second, one.operations) for one in found.seconds] == [(0, 2), (2, 1)]
    with pytest.raises(UserError, match="line 3: this is no transaction"):
        read(tmp_path, "benchbase", RAW.replace("500500,3000", "500500,soon"))


def test_go_tpc_s_transactions_are_kinds_and_its_errors_are_none(tmp_path: Path) -> None:
    found = read(tmp_path, "go-tpc", GO_TPC)
    assert (found.duration_s, found.operations, found.errors) == (60.0, 880, {"NEW_ORDER_ERR": 3})
    assert found.kinds["NEW_ORDER"].latency_us.p99_9 == 35_700.0
    assert found.latency.mean == pytest.approx((4500.0 + 2150.0) * 1e3 / 880)
    assert found.latency.p99 is None and "99th percentile is not known" in found.remarks[0]


def test_ycsb_is_read_in_both_its_forms(tmp_path: Path) -> None:
    found = read(tmp_path, "ycsb", YCSB)
    assert (found.duration_s, found.operations, found.errors) == (50.0, 10_000, {"UPDATE-FAILED": 7})
    assert found.kinds["READ"].latency_us.p99 == 767.0 and (found.latency.min, found.latency.max) == (
        254.0,
        28127.0,
    )
    of_go = read(tmp_path, "ycsb", GO_YCSB)
    assert (of_go.duration_s, of_go.operations, of_go.clients) == (20.0, 1000, 16)
    assert (of_go.latency.p50, of_go.latency.p99, of_go.latency.p99_99) == (95.0, 300.0, 900.0)


def test_k6_s_two_forms_say_the_same(tmp_path: Path) -> None:
    found = read(tmp_path, "k6", json.dumps(K6))
    assert (found.duration_s, found.operations, found.clients) == (20.0, 1980, 8)
    assert (found.latency.p50, found.latency.p95, found.latency.p99) == (3500.0, 9000.0, None)
    of_function = {"metrics": {name: {"type": "x", "values": one} for name, one in K6["metrics"].items()}}
    assert read(tmp_path, "k6", json.dumps(of_function)).operations == 1980
    del K6_WITHOUT["metrics"]["http_reqs"]
    assert read(tmp_path, "k6", json.dumps(K6_WITHOUT)).duration_s == 20.0


K6_WITHOUT: dict[str, Any] = json.loads(json.dumps(K6))


def test_wrk_takes_no_refusal_for_an_answer(tmp_path: Path) -> None:
    found = read(tmp_path, "wrk", WRK)
    assert (found.duration_s, found.operations, found.clients) == (30.0, 3000, 50)
    assert found.errors == {"no 2xx or 3xx": 48, "socket read": 2, "socket timeout": 5}
    assert (found.latency.p50, found.latency.p99, found.latency.max) == (158_000.0, 1_660_000.0, 3_050_000.0)


def test_fio_s_directions_are_kinds(tmp_path: Path) -> None:
    found = read(tmp_path, "fio", "fio: a warning\n" + json.dumps(FIO))
    assert (found.duration_s, found.operations, found.clients) == (30.0, 4000, 1)
    assert found.kinds["mixed read"].latency_us.p99 == 900.0 and found.started_unix_s == 1_700_000_070.0
    assert (found.latency.min, found.latency.max, found.latency.p99) == (1.0, 9000.0, None)


WHOLE = {
    "hammerdb": HAMMERDB,
    "benchbase": json.dumps(BENCHBASE),
    "go-tpc": GO_TPC,
    "ycsb": YCSB,
    "k6": json.dumps(K6),
    "wrk": WRK,
    "fio": json.dumps(FIO),
}


def test_each_tool_is_tried() -> None:
    assert WHOLE.keys() | {"pgbench", "sysbench"} == set(TOOLS)


@pytest.mark.parametrize("tool", WHOLE)
def test_a_file_that_is_not_the_tool_s_is_refused(tmp_path: Path, tool: str) -> None:
    """Another tool's, a cut one, two joined ones, and nothing."""
    for other, text in WHOLE.items():
        if other != tool:
            with pytest.raises(UserError, match=str(tmp_path / "result")):
                read(tmp_path, tool, text)
    whole = WHOLE[tool]
    for spoilt in (whole[: len(whole) // 3], whole + whole, "", "\n", "[]\n", "{}\n", "null\n"):
        with pytest.raises(UserError, match=str(tmp_path / "result")):
            read(tmp_path, tool, spoilt)
