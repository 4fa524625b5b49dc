"""What MariaDB writes into its log, and what Dyno makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.mariadb.server import hint, problems
from dbdyno.obtain.installation import Installation

NONE = Installation("mariadb", "11.8.6", "nowhere", Path("/nowhere"), ("/nowhere/bin/mariadbd",), "0")

STARTED = """\
2026-01-01 12:00:00 0 [Warning] Could not increase number of max_open_files to more than 20000 (request: 32)
2026-01-01 12:00:00 0 [Note] InnoDB: Using io_uring
2026-01-01 12:00:00 0 [Warning] 'user' entry 'root@host' ignored in --skip-name-resolve mode.
2026-01-01 12:00:00 0 [Note] mariadbd: ready for connections.
"""


def test_an_ordinary_start_has_no_problems() -> None:
    assert problems(STARTED) == []


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01 12:00:00 0 [Warning] option 'table_open_cache': unsigned value 0 adjusted to 10",
        "2026-01-01 12:00:00 0 [Warning] Changed limits: max_connections: 100  table_cache: 200",
        "2026-01-01 12:00:00 0 [ERROR] InnoDB: Page corruption detected",
        "260101 12:00:00 [ERROR] mariadbd got signal 11 ;",
        "2026-01-01 12:00:00 5 [Warning] Aborted connection 5 to db: 'x' (Got an error reading packets)",
    ],
)
def test_a_line_that_makes_a_trial_doubtful_is_found(line: str) -> None:
    assert problems(f"{STARTED}{line}\n") == [line]


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        ("[ERROR] InnoDB: Unable to lock ./ibdata1 error: 11", "another server"),
        ("mariadbd: Error writing file './ibdata1' (Errcode: 28 \"No space left on device\")", "make room"),
        ("[ERROR] InnoDB: Cannot allocate memory for the buffer pool", "smaller buffer pool"),
        (
            "mariadbd: error while loading shared libraries: libaio.so.1: cannot open",
            "fetch the engine again",
        ),
        ("[ERROR] mariadbd: Error while setting value 'x' to 'innodb_flush_method'", "refuses this value"),
        ("nothing that is known", "end of its log"),
    ],
)
def test_what_the_log_says_becomes_a_remedy(log: str, remedy: str) -> None:
    assert remedy in hint(log, NONE)


def test_advice_is_not_taken_for_the_cause() -> None:
    advice = "2026-01-01 1:00:00 0 [Note] InnoDB: Set innodb_force_recovery=1 to ignore corrupted pages."
    cause = (
        "2026-01-01 1:00:00 0 [ERROR] InnoDB: Failed to read page 3: Page read from tablespace is corrupted."
    )
    assert problems(f"{advice}\n{cause}\n") == [cause]
