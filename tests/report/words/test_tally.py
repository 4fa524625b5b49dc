"""What is said of a tally to a person."""

from __future__ import annotations

from typing import Any

from dbdyno.report.words.tally import tally_text
from tests.fakes import a_kind, make_tally, no_latency


def said(**changes: Any) -> dict[str, str]:
    """The lines of the summary by their first word."""
    return {line.split()[0]: line for line in tally_text(make_tally(**changes)).splitlines()}


def test_what_waited_is_shown_although_nothing_was_done() -> None:
    lines = said(operations=0, unfinished=1, driver_cpu_us_per_op={"user": None, "system": None})
    assert lines["latency"].startswith("latency ms  mean 0.900  p50 0.800")
    assert lines["unfinished"].startswith("unfinished  1 transaction not done at the end")
    assert "driver" not in lines


def test_the_summary_says_how_much_was_gathered() -> None:
    assert said()["gathering"].startswith("gathering   off")
    lines = said(gather="when_crowded", gathered_share=0.45, sched_batch=True)
    assert lines["gathering"] == "gathering   when crowded: 45% of the time under SCHED_BATCH"


def test_what_failed_stands_beside_what_succeeded() -> None:
    failed = no_latency().but(
        count=100,
        sum=1e7,
        mean=1e5,
        min=1e5,
        p50=1e5,
        p90=1e5,
        p95=1e5,
        p99=1e5,
        p99_9=1e5,
        p99_99=1e5,
        max=1e5,
    )
    lines = said(failed_latency_us=failed)
    assert lines["latency"].endswith("(of those that succeeded)")
    assert lines["failed"].startswith("failed ms   mean 100.000") and "(100 transactions)" in lines["failed"]
    assert not said(failed_latency_us=no_latency())["latency"].endswith(")")


def test_a_transaction_under_way_at_the_end_is_no_finding() -> None:
    lines = said(unfinished=1)
    assert "unfinished" not in lines
    assert lines["driver"] == "driver CPU  4.00 us per transaction (user 3.00, system 1.00)"


def test_the_summary_warns_of_a_driver_that_waited_for_a_cpu() -> None:
    lines = said(driver_run_wait_share=[0.6], driver_busy_share=[0.35])
    assert lines["warning:"].startswith("warning: driver thread 0 was ready and had no CPU 60% of the time")
    assert "warning:" not in said(driver_run_wait_share=[0.4], driver_busy_share=[0.35])


def test_new_orders_are_those_of_tpcc_alone() -> None:
    kinds = {name: a_kind(9, 1.0, make_tally().latency_us) for name in ("new_order", "b")}
    assert "per minute" not in tally_text(make_tally(workload="script", by_transaction=kinds))
    assert "540.0 per minute" in tally_text(make_tally(workload="tpcc", by_transaction=kinds))


def test_many_errors_are_warned_of_first_and_each_has_an_example() -> None:
    example = "shop.sql:2: \\gset needs one row, and there were 0"
    tally = make_tally(operations=97, errors={"user": 3}, error_examples={"user": example})
    lines = tally_text(tally).splitlines()
    assert lines[1] == "warning: 3% of the transactions failed: see the errors below"
    assert f"            user, 3 times: {example}" in lines
    assert "failed:" not in tally_text(make_tally(operations=300, errors={"user": 3}))


def test_each_kind_of_statement_has_its_share_of_the_time() -> None:
    latency = make_tally().latency_us
    short = latency.model_copy(update={"sum": latency.sum / 3})
    statements = {
        "SELECT c FROM t WHERE id = ?": {"errors": 0, "latency_us": latency.model_dump()},
        "COMMIT": {"errors": 2, "latency_us": short.model_dump()},
    }
    lines = tally_text(make_tally(by_statement=statements)).splitlines()
    first, text, second, end = lines[-4:]
    assert first.startswith("statement  75% of the time ")
    assert (text.strip(), end.strip()) == ("SELECT c FROM t WHERE id = ?", "COMMIT")
    assert first.endswith("  max 4.000")
    assert second.startswith("statement  25% of the time ")
    assert second.endswith("  max 4.000  2 errors")


def test_kinds_stand_in_columns_however_long_their_names_are() -> None:
    latency_us = make_tally().latency_us
    names = {"short": 3, "a_transaction_with_a_very_long_name": 12_345}
    kinds = {name: a_kind(count, 1.0, latency_us) for name, count in names.items()}
    rows = [line for line in tally_text(make_tally(by_transaction=kinds)).splitlines() if "  ms: " in line]
    assert len({line.index("  ms: ") for line in rows}) == 1 and len(rows) == 2
