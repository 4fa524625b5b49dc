"""What `dyno load` prints of a tally for a person."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.cli.load_output import print_tally
from tests.fakes import make_tally


def said(capsys: pytest.CaptureFixture[str], **changes: Any) -> dict[str, str]:
    """The lines of the summary by their first word."""
    print_tally(make_tally(**changes))
    return {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}


def test_what_waited_is_shown_although_nothing_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, operations=0, unfinished=1, driver_cpu_us_per_op={"user": None, "system": None})
    assert lines["latency"].startswith("latency ms  mean 0.900  p50 0.800")
    assert lines["unfinished"].startswith("unfinished  1 transaction not done at the end")
    assert "driver" not in lines


def test_the_summary_says_how_much_was_gathered(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys)["gathering"].startswith("gathering   off")
    lines = said(capsys, gather="when_crowded", gathered_share=0.45, sched_batch=True)
    assert lines["gathering"] == "gathering   when crowded: 45% of the time under SCHED_BATCH"


def test_a_transaction_under_way_at_the_end_is_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, unfinished=1)
    assert "unfinished" not in lines
    assert lines["driver"] == "driver CPU  4.00 us per transaction (user 3.00, system 1.00)"


def test_the_summary_warns_of_a_driver_that_waited_for_a_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, driver_run_wait_share=[0.6], driver_busy_share=[0.35])
    assert lines["warning:"].startswith("warning: driver thread 0 was ready and had no CPU 60% of the time")
    assert "warning:" not in said(capsys, driver_run_wait_share=[0.4], driver_busy_share=[0.35])


def test_each_kind_of_statement_has_its_share_of_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    latency = make_tally().latency_us
    short = latency.model_copy(update={"sum": latency.sum / 3})
    statements = {
        "SELECT c FROM t WHERE id = ?": {"errors": 0, "latency_us": latency.model_dump()},
        "COMMIT": {"errors": 2, "latency_us": short.model_dump()},
    }
    print_tally(make_tally(by_statement=statements))
    lines = capsys.readouterr().out.splitlines()
    first, text, second, end = lines[-4:]
    assert first.startswith("statement  75% of the time ")
    assert (text.strip(), end.strip()) == ("SELECT c FROM t WHERE id = ?", "COMMIT")
    assert first.endswith("  max 4.000")
    assert second.startswith("statement  25% of the time ")
    assert second.endswith("  max 4.000  2 errors")
