"""TPC-C by procedures at the server does what its plain statements do, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.driver.job import Job, LedgerFile
from dbdyno.driver.load import Invariant
from dbdyno.driver.passwords import query
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.engines.engine import Server
from tests.conformance.conftest import WAITS_FOR_NO_DISK, started

WITH_PROCEDURES = ("mariadb", "mysql", "postgresql")
LEDGER = "CREATE TABLE dyno_ledger (cut INTEGER NOT NULL, client INTEGER NOT NULL, entry INTEGER NOT NULL)"
WRITTEN = (
    "SELECT w_id, w_ytd FROM warehouse ORDER BY 1",
    "SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district ORDER BY 1, 2",
    "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data"
    " FROM customer WHERE c_payment_cnt <> 1 OR c_delivery_cnt <> 0 ORDER BY 1, 2, 3",
    "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount, h_data FROM history WHERE h_amount <> 10"
    " ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_carrier_id FROM orders"
    " WHERE o_id > 3000 OR (o_id > 2100 AND o_carrier_id IS NOT NULL) ORDER BY 1, 2, 3",
    "SELECT no_w_id, no_d_id, no_o_id FROM new_order ORDER BY 1, 2, 3",
    "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,"
    " ol_dist_info FROM order_line WHERE ol_o_id > 3000 ORDER BY 1, 2, 3, 4",
    "SELECT ol_w_id, ol_d_id, COUNT(ol_delivery_d) FROM order_line GROUP BY ol_w_id, ol_d_id ORDER BY 1, 2",
    "SELECT s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_order_cnt > 0"
    " ORDER BY 1, 2",
)
"""All that transactions write, but for the dates."""


@pytest.fixture(params=WITH_PROCEDURES)
def server(request: pytest.FixtureRequest, tmp_path: Path, shelf: Path) -> Iterator[Server]:
    with started(request.param, WAITS_FOR_NO_DISK[request.param], tmp_path, shelf) as running:
        yield running


def job(server: Server, *, procedures: bool, warehouses: int = 1, **more: object) -> Job:
    options = {"warehouses": warehouses, "procedures": procedures}
    return Job.model_validate(
        {
            "url": server.url,
            "workload": "tpcc",
            "options": options,
            "seed": 7,
            "duration_s": 300.0,
            "warmup_s": 0.0,
            **more,
        }
    )


def ran(asked: Job) -> Tally:
    return Tally.model_validate_json(_driver.run(asked.model_dump_json()))


def violated(asked: Job, tally: Tally) -> list[str]:
    told = Acknowledged.by([tally]).model_dump_json()
    found = [
        Invariant.model_validate(one) for one in json.loads(_driver.check(asked.model_dump_json(), told))
    ]
    assert len(found) == 15
    return [one.name for one in found if not one.holds]


def refused_without_procedures(server: Server) -> str:
    """What a load by procedures says of data that have none."""
    with pytest.raises(_driver.DriverError, match="prepared without tpcc's procedures") as refused:
        ran(job(server, procedures=True, warehouses=2, operations=10))
    return str(refused.value.hint)


def test_procedures_are_prepared_and_write_what_the_plain_statements_write(server: Server) -> None:
    left = []
    for procedures in (False, True):
        asked = job(server, procedures=procedures, warehouses=2, operations=1500)
        _driver.prepare(asked.model_dump_json())
        tally = ran(asked)
        assert tally.errors == {}
        assert tally.rollbacks == tally.by_transaction["new_order_rolled_back"].operations
        counts = {name: one.operations for name, one in tally.by_transaction.items()}
        assert min(counts.values()) > 0, counts
        left.append((counts, [query(server.url, sql) for sql in WRITTEN]))
        if not procedures:
            assert "prepare them with procedures = true" in refused_without_procedures(server)
    assert left[0][0] == left[1][0]
    for sql, plain, called in zip(WRITTEN, left[0][1], left[1][1], strict=True):
        assert plain, sql
        assert called == plain, sql
    _driver.cleanup(asked.model_dump_json())
    sql = "SELECT COUNT(*) FROM information_schema.routines WHERE routine_name LIKE 'tpcc%'"
    assert query(server.url, sql) == [[0]]


def test_conditions_hold_of_procedures_that_clients_call_at_once(server: Server, tmp_path: Path) -> None:
    ledger = LedgerFile(path=str(tmp_path / "ledger"), cut=3)
    asked = job(server, procedures=True, operations=1500, clients=8, ledger=ledger)
    _driver.prepare(asked.model_dump_json())
    query(server.url, LEDGER)
    tally = ran(asked)
    assert violated(asked, tally) == []
    written = ("new_order", "payment", "delivery")
    acknowledged = sum(tally.by_transaction[name].acknowledged for name in written)
    assert query(server.url, "SELECT COUNT(*), COUNT(DISTINCT client) FROM dyno_ledger WHERE cut = 3") == [
        [acknowledged, 8]
    ]
    # One that keeps the money of a payment is found out.
    query(server.url, "UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 5 AND c_d_id = 5")
    assert violated(asked, tally) == ["consistency_10", "consistency_12"]


def test_an_engine_without_procedures_says_so(tmp_path: Path, shelf: Path) -> None:
    with (
        started("sqlite", {}, tmp_path, shelf) as server,
        pytest.raises(_driver.DriverError, match="no procedures for sqlite") as refused,
    ):
        _driver.prepare(job(server, procedures=True).model_dump_json())
    assert "MariaDB, MySQL or PostgreSQL" in refused.value.hint
