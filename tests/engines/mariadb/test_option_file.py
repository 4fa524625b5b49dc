"""An option's name means what a server takes it for, also where Dyno sets the option itself."""

from __future__ import annotations

import pytest

from dbdyno.engines.facts import OF_DYNO
from dbdyno.engines.mariadb.option_file import lines

KNOWN = frozenset({"port_open_timeout", "user_limit", "back_log", "log_bin"})
OURS = frozenset({"port", "user"})


@pytest.mark.parametrize("line", ["port=3307", "user = mysql", "loose-port = 1"])
def test_an_option_of_dynos_own_is_not_taken_for_a_longer_name(line: str) -> None:
    (found,) = lines(f"[mysqld]\n{line}\n", KNOWN, OURS)
    assert found.name in OURS and found.untaken == OF_DYNO


def test_the_beginning_of_one_name_is_enough() -> None:
    (found,) = lines("[mysqld]\nback = 5\n", KNOWN, OURS)
    assert (found.name, found.level, found.untaken) == ("back_log", "5", "")


def test_a_switched_option_is_turned() -> None:
    (found,) = lines("[mysqld]\nskip-log-bin\n", KNOWN, OURS)
    assert (found.name, found.level) == ("log_bin", False)
