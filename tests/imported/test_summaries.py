"""Totals and percentiles that other tools print: in the forms of their versions, whole and spoilt."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.analyse.latency import summed
from dbdyno.errors import UserError
from dbdyno.imported import TOOLS
from dbdyno.imported.files import Repetition
from dbdyno.imported.tallies import CountedRepetition
from tests.imported.summaries_cases import (
    BENCHBASE,
    FIO,
    GO_TPC,
    GO_YCSB,
    HAMMERDB,
    K6,
    PROFILED,
    WHOLE,
    WRK,
    YCSB,
)


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


def test_a_packed_document_needs_no_end_of_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "summary.json.gz"
    path.write_bytes(gzip.compress(json.dumps(K6).encode()))
    assert TOOLS["k6"].read(Repetition(str(path), (path,)), None).operations == 1980


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


def test_each_tool_is_tried() -> None:
    assert WHOLE.keys() | {"pgbench", "sysbench", "hdrhistogram", "phoronix"} == set(TOOLS)


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
