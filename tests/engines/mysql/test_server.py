"""What MySQL writes into its log, and what Dyno makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.mysql.server import SERVER, hint, problems
from dbdyno.errors import UserError
from dbdyno.obtain.installation import Installation
from tests.obtain.path_cases import program

NONE = Installation("mysql", "9.7.4", "nowhere", Path("/nowhere"), ("/nowhere/bin/mysqld",), "0")

STARTED = """\
2026-01-01T12:00:00.000000Z 0 [System] [MY-015015] [Server] MySQL Server - start.
2026-01-01T12:00:00.000000Z 0 [Warning] [MY-010068] [Server] CA certificate ca.pem is self signed.
2026-01-01T12:00:00.000000Z 0 [Warning] [MY-011810] [Server] Insecure configuration for --pid-file: Location
"""


def test_an_ordinary_start_has_no_problems() -> None:
    assert problems(STARTED) == []


def test_a_line_that_makes_a_trial_doubtful_is_found() -> None:
    line = "2026-01-01T12:00:00.000000Z 0 [ERROR] [MY-011972] [InnoDB] Database page corruption detected"
    assert problems(f"{STARTED}{line}\n") == [line]


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        ("[ERROR] [MY-012574] [InnoDB] Unable to lock ./ibdata1 error: 11", "another server"),
        ("[ERROR] [MY-012639] [InnoDB] Write to file failed: errno: 28", "make room"),
        ("mysqld: error while loading shared libraries: libaio.so.1: cannot open", "fetch the engine again"),
        ("[ERROR] unknown variable 'group-replication-member-weight=60'", "give the `cluster.kind`"),
        ("nothing that is known", "end of its log"),
    ],
)
def test_what_the_log_says_becomes_a_remedy(log: str, remedy: str) -> None:
    assert remedy in hint(log, NONE)


def test_a_server_that_makes_its_data_in_another_way_is_refused_by_its_version(homes: Path) -> None:
    old = program(homes / "mysqld", "#!/bin/sh\necho 'mysqld  Ver 5.6.51 for linux-glibc2.12 on x86_64'\n")
    with pytest.raises(UserError, match=r"mysqld is MySQL 5\.6\.51, and Dyno starts 8 and later ones"):
        SERVER.at(old)
    new = program(homes / "mysqld", "#!/bin/sh\necho 'mysqld  Ver 8.4.5 for Linux on x86_64'\n")
    assert SERVER.at(new).version == "8.4.5"
