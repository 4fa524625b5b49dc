"""What other tools print, in the forms of their versions. The figures are made up."""

from __future__ import annotations

import json
from typing import Any

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
WHOLE = {
    "hammerdb": HAMMERDB,
    "benchbase": json.dumps(BENCHBASE),
    "go-tpc": GO_TPC,
    "ycsb": YCSB,
    "k6": json.dumps(K6),
    "wrk": WRK,
    "fio": json.dumps(FIO),
}
