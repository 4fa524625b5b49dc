"""URLs that name several hosts, against a PostgreSQL and its standby."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbdyno.driver import _driver
from dbdyno.errors import EngineMissing
from tests.conformance.sessions_cases import rows
from tests.running_server import UsersServer, replica, users_server

ROLE = "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END"


@dataclass(frozen=True)
class Pair:
    primary: UsersServer
    standby: UsersServer

    def url(self, attributes: str, first: str = "primary", user: str = "dyno") -> str:
        folders = [str(one.folder / "r") for one in (self.primary, self.standby)]
        if first == "standby":
            folders.reverse()
        return f"postgresql://{user}@/dyno?host={','.join(folders)}&target_session_attrs={attributes}"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="dyno-test-") as folder:
        places = [Path(folder) / name for name in ("1", "2")]
        for place in places:
            place.mkdir()
        try:
            # The distribution's has pg_basebackup beside it.
            with users_server("postgresql@15", places[0]) as primary, replica(primary, places[1]) as standby:
                yield Pair(primary, standby)
        except EngineMissing as missing:
            pytest.skip(f"postgresql cannot be had here: {missing.message}")


@pytest.mark.parametrize("first", ["primary", "standby"])
@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        ("primary", "primary"),
        ("read-write", "primary"),
        ("standby", "standby"),
        ("read-only", "standby"),
        ("prefer-standby", "standby"),
    ],
)
def test_a_session_is_opened_with_the_host_that_the_url_wants(
    pair: Pair, attributes: str, role: str, first: str
) -> None:
    assert rows(pair.url(attributes, first), ROLE) == [[role]]


@pytest.mark.parametrize("first", ["primary", "standby"])
def test_any_host_will_do_unless_the_url_says_which(pair: Pair, first: str) -> None:
    assert rows(pair.url("any", first), ROLE) == [[first]]


def test_hosts_that_do_not_answer_are_passed_over(pair: Pair) -> None:
    nowhere = "/nowhere/at/all"
    folder = pair.primary.folder / "r"
    for attributes in ("any", "read-write", "prefer-standby"):
        url = f"postgresql://dyno@/dyno?host={nowhere},{folder}&target_session_attrs={attributes}"
        assert rows(url, ROLE) == [["primary"]]


def test_a_url_whose_hosts_will_not_do_says_why_of_each(pair: Pair) -> None:
    folder = pair.primary.folder / "r"
    with pytest.raises(_driver.DriverError) as caught:
        rows(f"postgresql://dyno@/dyno?host=/nowhere,{folder}&target_session_attrs=standby", ROLE)
    assert "/nowhere: " in caught.value.message
    assert f"{folder}: it is a primary" in caught.value.message
    assert "target_session_attrs" in caught.value.hint
    with pytest.raises(_driver.DriverError) as caught:
        rows(pair.url("any", user="nobody_here"), ROLE)
    assert 'check user "nobody_here"' in caught.value.hint
