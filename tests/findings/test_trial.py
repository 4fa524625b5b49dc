"""What `dyno report RUN TRIAL` says of one trial."""

from __future__ import annotations

import io

from rich.console import Console

from dbdyno.findings import trial as part
from dbdyno.records.record import Recovery
from dbdyno.report.renderers import terminal
from dbdyno.study.soak import Act
from tests.analyse.machine_cases import reset
from tests.analyse.restarts_cases import LOST, record_of
from tests.fakes import make_run, make_study


def row_of(recovery: Recovery) -> str:
    """The row of an act, without the space between its columns."""
    output = io.StringIO()
    shown = part.document(record_of(0, "baseline", recovery), make_run(make_study(1)))
    terminal.render(shown, Console(file=output, width=200))
    [row] = [line for line in output.getvalue().splitlines() if recovery.act.words in line]
    return " ".join(row.split())


def test_an_act_says_what_it_took_along() -> None:
    assert "power cut 100 7 12.50" in row_of(LOST)


def test_an_act_that_was_not_done_says_why_and_counts_nothing() -> None:
    row = row_of(Recovery(act=Act.CUT, blocked="no loop devices"))
    assert row.endswith("power cut – – – – not done: no loop devices")


def test_an_act_without_a_ledger_counts_nothing() -> None:
    assert "power cut – – – 0.5" in row_of(Recovery(act=Act.CUT, ready_s=0.5))


def test_what_an_engine_made_of_a_flipped_bit_is_told() -> None:
    assert row_of(Recovery(act=Act.FLIP, acknowledged=3, told=True)).endswith("the engine told of it")
    silent = row_of(Recovery(act=Act.FLIP, acknowledged=3, told=False))
    assert silent.endswith("the engine handed out another row and said nothing")


def test_what_a_reset_left_of_a_machines_measurements_is_told() -> None:
    full, fast = reset("full", 24.0), reset("kexec", 12.5)
    assert row_of(full).endswith("the firmware ran, up after 24.00 s, all PCRs explained")
    assert row_of(fast).endswith("no firmware ran, up after 12.50 s, not explained: PCR 10")
