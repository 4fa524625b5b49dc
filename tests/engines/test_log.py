"""Reading a server's log."""

from __future__ import annotations

import re
from pathlib import Path

from dbdyno.engines.log import doubtful_lines, hint_in, reason_in, tail, unknown_setting, untold


def test_the_end_of_a_log_begins_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log) == ""
    log.write_text("first line\nsecond line\nthird\n")
    assert tail(log) == "first line\nsecond line\nthird\n"
    assert tail(log, 12) == "third\n"


def test_a_line_that_is_known_to_be_harmless_does_not_alarm() -> None:
    log = "ready\n  ERROR: disk\nERROR: known\n"
    assert doubtful_lines(log, re.compile("ERROR"), re.compile("known")) == ["ERROR: disk"]


def test_the_first_pattern_that_is_found_gives_the_hint() -> None:
    hints = (("full", "make room"), ("disk", "look at the disk"))
    assert hint_in("the disk is full", hints) == "make room"
    assert hint_in("nothing known", hints) == "look at the end of its log"


def test_the_first_error_says_why_a_server_ended() -> None:
    warning, error = "[Warning] No argument for --log-bin", "[ERROR] InnoDB: corrupted page 67"
    assert reason_in([warning, error, "[ERROR] Aborting"]) == error
    assert reason_in([warning]) == warning
    assert reason_in(["WARNING:  out of memory", "FATAL:  no start"]) == "FATAL:  no start"
    assert reason_in([]) == ""


def test_the_nearest_setting_is_named() -> None:
    assert unknown_setting("X", "bufer", ["buffer", "port"]) == (
        "this X has no setting `bufer`; did you mean `buffer`?"
    )
    assert unknown_setting("X", "zzz", ["buffer"]) == "this X has no setting `zzz`"


def test_a_line_of_the_log_is_told_once_and_each_time_that_it_comes_again() -> None:
    assert untold(["a", "b"], []) == ["a", "b"]
    assert untold(["a", "b", "a"], ["a", "b"]) == ["a"]
    assert untold(["a", "c", "b", "d"], ["a", "b"]) == ["c", "d"]
    # Of a long log only the end is read.
    assert untold(["b", "c"], ["a", "b"]) == ["c"]
    assert untold(["a", "b"], ["a", "b"]) == []
