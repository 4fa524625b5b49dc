"""Replays of a variant, summed over its trials."""

from __future__ import annotations

from dbdyno.driver.tally import Failed
from dbdyno.findings import analyse
from dbdyno.findings.replays import replays
from dbdyno.records.record import Outcome
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.replays_cases import played
from tests.report.words.replay_cases import NONE

STUDY = a_study(blocks=2)


def test_counts_are_summed_and_times_are_medians() -> None:
    first, second = (record for record in records_of(STUDY) if record.variant == "baseline")
    failed = (Failed(statement="SELECT ?", error="1146 no such table", count=3),)
    records = [
        played(first, took_s=60.0, late_by_server=5, failed=failed, rows_differ=1),
        played(second, took_s=62.0, late_by_driver=7, unsent=2),
    ]
    [found] = replays(records)
    assert (found.trials, found.took_s, found.statements) == (2, 61.0, 2000)
    assert (found.late_by_server, found.late_by_driver, found.unsent, found.failed) == (5, 7, 2, 3)
    assert (found.server_lag_p99_ms, found.rows_differ, found.rows_compared) == (2.0, 1, 20)


def test_without_pauses_there_is_no_lag() -> None:
    [found] = replays([played(records_of(STUDY)[0], speed=None, server_lag_us=NONE, driver_lag_us=NONE)])
    assert found.server_lag_p99_ms is None


def test_only_measured_trials_that_played_a_recording_count() -> None:
    first, second, *_ = records_of(STUDY)
    lost = played(second).but(outcome=Outcome.BROKEN)
    assert [one.trials for one in replays([played(first), lost])] == [1]
    assert analyse(STUDY, a_run(STUDY), records_of(STUDY)).replays == ()
