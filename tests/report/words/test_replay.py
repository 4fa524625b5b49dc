"""What is said of a recording that was played."""

from __future__ import annotations

from dbdyno.driver.tally import Failed
from dbdyno.report.words.tally import sentences
from tests.report.words.replay_cases import NONE, REPLAY


def said(**changes: object) -> str:
    return "\n".join(sentences(REPLAY.model_copy(update=changes)))


def test_the_times_and_who_was_late_come_first() -> None:
    assert said() == (
        "the recording lasts 60.0 s, the replay took 61.5 s\n"
        "none of 1,000 statements began later than 1 ms after its time"
    )
    told = said(late_by_server=5, late_by_driver=4)
    assert "9 of 1,000 statements began later than 1 ms after their time: 5 by the server, 4 by the" in told
    assert "lag by the server p50 1.000  p99 2.000  max 3.000 ms, 2.5 s in all" in told


def test_another_speed_has_another_plan_and_none_has_no_lag() -> None:
    assert "at 2 times its speed that is 30.0 s, and the replay" in said(speed=2.0, planned_s=30.0)
    told = said(speed=None, planned_s=None, server_lag_us=NONE, driver_lag_us=NONE)
    assert told == "the recording lasts 60.0 s; the replay took 61.5 s without its pauses"


def test_what_went_otherwise_is_told_by_statement() -> None:
    told = said(
        failed=(Failed(statement="SELECT ?", error="1146 no such table", count=3),),
        rows_differ=2,
        differing={"SELECT a": 2},
        sessions_lost=1,
        unsent=1,
    )
    assert (
        "3 statements failed that did not fail in the recording:\n  3 x 1146 no such table: SELECT ?" in told
    )
    assert "2 of 10 statements gave another number of rows than in the recording:\n  2 x SELECT a" in told
    assert "1 session lost the connection" in told
    assert "1 statement of the recording was never sent" in told
