"""What MariaDB's counters show of a load."""

from __future__ import annotations

from dbdyno.engines.mariadb.facts import exercised


def test_a_counter_shows_that_a_setting_was_exercised() -> None:
    before = {"Innodb_os_log_fsyncs": 10.0, "Innodb_data_fsyncs": 1.0}
    after = {"Innodb_os_log_fsyncs": 250.0, "Innodb_data_fsyncs": 1.0}
    reading = exercised("innodb_flush_log_at_trx_commit", before, after)
    assert reading is not None
    assert reading.value == "Innodb_os_log_fsyncs +240, Innodb_data_fsyncs +0"
    assert exercised("lc_messages", before, after) is None
